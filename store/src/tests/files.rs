use vocative_contract::file::FileSink as _;

use super::*;
use vocative_core::file::WantedFile;
use vocative_core::ids::FileId;
use vocative_core::job::JobState;

pub(super) fn attached(id: &'static str, file: &'static str) -> Said {
    Said {
        file: Some(file),
        ..said(id, "see this")
    }
}

/// The files that jobs of a kind are about, in the order in which they come due.
async fn queued(fixture: &Fixture, kind: &str) -> Vec<FileId> {
    let jobs = fixture.store.jobs(100).await.unwrap().into_iter();
    let jobs = jobs.filter(|job| job.kind == kind && job.state == JobState::Pending);
    jobs.map(|job| FileId(job.key.parse().unwrap())).collect()
}

/// The files that are still to be fetched.
pub(super) async fn due(fixture: &Fixture) -> Vec<WantedFile> {
    let mut due = Vec::new();
    for file in queued(fixture, "fetch-file").await {
        due.extend(fixture.store.file_to_fetch(file).await.unwrap());
    }
    due
}

#[tokio::test]
async fn what_is_said_in_a_voice_note_joins_its_turn_and_stays_through_an_edit() {
    let fixture = Fixture::new().await;
    let note = Said {
        text: "[voice, 0:03]",
        ..attached("1", "v.oga")
    };
    let turn = turn_of(fixture.hear(note.clone()).await).turn;
    let file = due(&fixture).await.remove(0);
    let mut content = fixture.store.new_content().unwrap();
    content.take(b"OggS").unwrap();
    let now_ms = NOW_MS + 900_000;
    assert!(
        fixture
            .store
            .keep_content(file.id, content, true, now_ms)
            .await
            .unwrap()
    );
    assert!(fixture.store.files_of(vec![turn]).await.unwrap()[0].is_to_be_heard);
    assert_eq!(queued(&fixture, "transcribe-file").await, [file.id]);
    let to_hear = fixture.store.note_to_transcribe(file.id).await.unwrap();
    assert_eq!(to_hear.map(|it| it.id), Some(file.id));
    let said = "where is the zebra".to_owned();
    fixture
        .store
        .keep_transcript(file.id, said, now_ms + 5_000)
        .await
        .unwrap();
    assert_eq!(
        fixture.contents().await,
        ["[voice, 0:03] where is the zebra"]
    );
    assert_eq!(fixture.found("zebra").await.len(), 1);
    assert!(!fixture.store.files_of(vec![turn]).await.unwrap()[0].is_to_be_heard);
    // Once is enough.
    fixture
        .store
        .keep_transcript(file.id, "again".to_owned(), now_ms)
        .await
        .unwrap();
    let edit = Said {
        edit_marker: Some("5"),
        text: "[voice, 0:03] about animals",
        ..note
    };
    fixture.hear(edit).await;
    let expected = "[voice, 0:03] about animals\n[voice] where is the zebra";
    assert_eq!(fixture.contents().await, [expected]);
    fixture
        .store
        .capture_delete(fixture.account, "C1", "1", now_ms)
        .await
        .unwrap();
    assert!(fixture.is_nowhere("zebra").await);
    assert_eq!(fixture.value::<i64>("SELECT count(*) FROM files").await, 0);
}
