//! How a user of `users.info` belongs to the organisation of our account. Pure.

use vocative_contract::envelope::Belonging;
use vocative_contract::identity::Identity;

use super::wire::UserObject;

/// What Slack's directory says of a user. A user whom it does not say to be ours is a stranger.
///
/// *Source:* Slack's user object: `is_stranger`, `team_id`, `enterprise_user`, `is_restricted` (a guest of
/// several channels) and `is_ultra_restricted` (of one).
pub(super) fn belonging_of(user: &UserObject, us: &Identity) -> Belonging {
    let is = |flag: Option<bool>| flag == Some(true);
    if is(*user.is_stranger) || !is_ours(user, us) {
        Belonging::Stranger
    } else if is(*user.is_restricted) || is(*user.is_ultra_restricted) {
        Belonging::Guest
    } else {
        Belonging::Member
    }
}

fn is_ours(user: &UserObject, us: &Identity) -> bool {
    let organisation = us.organisation.as_deref();
    let is_our_id = |id: &str| id == us.account || Some(id) == organisation;
    let person = user.enterprise_user.as_ref();
    let is_our_person = |id: &str| Some(id) == organisation;
    user.team_id.as_deref().is_some_and(is_our_id)
        || person.is_some_and(|person| {
            person.enterprise_id.as_deref().is_some_and(is_our_person)
                || person.teams.contains(&us.account)
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use vocative_contract::identity::Platform;

    fn identity(organisation: Option<&str>) -> Identity {
        Identity {
            platform: Platform::Slack,
            account: "T1".to_owned(),
            account_name: "Acme".to_owned(),
            user_id: "UBOT".to_owned(),
            other_ids: vec![],
            username: None,
            display_name: "Bot".to_owned(),
            warnings: vec![],
            organisation: organisation.map(str::to_owned),
        }
    }

    #[test]
    fn only_who_is_told_to_be_ours_is_ours() {
        use Belonging::{Guest, Member, Stranger};
        let ours = Some("E1");
        let table = [
            (None, json!({"team_id": "T1"}), Member),
            (None, json!({"team_id": "T1", "is_restricted": true}), Guest),
            (
                None,
                json!({"team_id": "T1", "is_ultra_restricted": true}),
                Guest,
            ),
            (
                None,
                json!({"team_id": "T1", "is_stranger": true}),
                Stranger,
            ),
            (None, json!({"team_id": "T2"}), Stranger),
            (None, json!({}), Stranger),
            (
                None,
                json!({"team_id": null, "is_stranger": null}),
                Stranger,
            ),
            (
                None,
                json!({"team_id": "T2", "is_restricted": true}),
                Stranger,
            ),
            // Our identity has no organisation, so nobody belongs to it.
            (
                None,
                json!({"enterprise_user": {"enterprise_id": null}}),
                Stranger,
            ),
            (
                None,
                json!({"team_id": "T2", "enterprise_user": {"enterprise_id": "E1"}}),
                Stranger,
            ),
            (ours, json!({"team_id": "E1"}), Member),
            (
                ours,
                json!({"team_id": "T2", "enterprise_user": {"enterprise_id": "E1"}}),
                Member,
            ),
            (
                ours,
                json!({"team_id": "T2", "enterprise_user": {"enterprise_id": "E1"},
                          "is_restricted": true}),
                Guest,
            ),
            (
                ours,
                json!({"team_id": "T2", "enterprise_user": {"enterprise_id": "E2"}}),
                Stranger,
            ),
            (
                ours,
                json!({"enterprise_user": {"teams": ["T2", "T1"]}}),
                Member,
            ),
            (
                ours,
                json!({"enterprise_user": {"teams": ["T2"]}}),
                Stranger,
            ),
            (ours, json!({"team_id": "T2"}), Stranger),
        ];
        for (organisation, user, expected) in table {
            let read: UserObject = serde_json::from_value(user.clone()).unwrap();
            let told = belonging_of(&read, &identity(organisation));
            assert_eq!(told, expected, "{organisation:?} {user}");
        }
    }
}
