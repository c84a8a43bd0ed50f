//! What one run may use.

use super::*;

#[tokio::test]
async fn a_run_stops_before_it_uses_more_than_it_may() {
    let usage = Usage {
        prompt_tokens: 800,
        completion_tokens: 100,
        ..Usage::default()
    };
    let searched = || Answer {
        usage,
        ..answer("", &[("a", "note", json!({"text": "x"}))])
    };
    let budget = |tokens, worked_ms| RunBudget {
        tokens,
        worked_ms,
        ..RunBudget::default()
    };
    let used_up = RunUsedUp::Tokens { max: 900 };
    let table = [
        (budget(900, 0), StepsEnd::RunUsedUp(used_up), 1),
        (budget(2_000, 0), answered_with("done", usage), 2),
        (budget(0, 600_000), answered_with("done", usage), 2),
    ];
    for (budget, expected, asked) in table {
        let mut house = House::open().await;
        house.budget = budget;
        let run = house.asked("find it").await;
        let notebook = Notebook::default();
        let model = Scripted::new(vec![Ok(searched()), Ok(answer("done", &[]))]);
        let ended = house.work(&run, &model, &notebook.toolbox()).await;
        assert_eq!(ended, expected, "{budget:?}");
        assert_eq!(model.times_asked(), asked, "{budget:?}");
        // Another attempt finds it used up as well, before it asks for anything.
        if asked == 1 {
            let model = Scripted::new(Vec::new());
            let ended = house.work(&run, &model, &notebook.toolbox()).await;
            assert_eq!(ended, expected);
        }
    }
}

fn answered_with(text: &str, first: Usage) -> StepsEnd {
    let last = answer(text, &[]);
    StepsEnd::Answered(Answer {
        usage: first.plus(last.usage),
        ..last
    })
}
