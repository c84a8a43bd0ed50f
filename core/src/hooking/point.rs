//! The points of a run at which hooks are asked.

/// A point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookPoint {
    /// Before the model sees a question.
    BeforeRun,
    /// Before each request to the model.
    BeforeModel,
    /// After each answer of the model, before it is stored.
    AfterModel,
    /// Before a call of a tool is begun, and before people are asked about it.
    BeforeTool,
    /// After a call, before its result is stored and shown to the model.
    AfterTool,
    /// Before anything that the model said, or that a tool gave, is stored.
    BeforeSave,
    /// Before an answer is committed and posted.
    BeforePost,
    /// After a run has ended.
    RunEnded,
    /// After a person decided about a call that waited, or nobody did in time.
    ApprovalDecided,
}

impl HookPoint {
    /// All of them, in the order of a run.
    pub const ALL: [Self; 9] = [
        Self::BeforeRun,
        Self::BeforeModel,
        Self::AfterModel,
        Self::BeforeTool,
        Self::AfterTool,
        Self::BeforeSave,
        Self::BeforePost,
        Self::RunEnded,
        Self::ApprovalDecided,
    ];

    /// The configured and stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeRun => "before_run",
            Self::BeforeModel => "before_model",
            Self::AfterModel => "after_model",
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
            Self::BeforeSave => "before_save",
            Self::BeforePost => "before_post",
            Self::RunEnded => "run_ended",
            Self::ApprovalDecided => "approval_decided",
        }
    }

    /// The point of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == name)
    }

    /// Whether a hook's word changes anything there; elsewhere it is only told.
    #[must_use]
    pub fn decides(self) -> bool {
        !matches!(self, Self::RunEnded | Self::ApprovalDecided)
    }

    /// Whether words can be taken out by pattern there.
    #[must_use]
    pub fn takes_words_out(self) -> bool {
        match self {
            Self::BeforeModel
            | Self::AfterModel
            | Self::AfterTool
            | Self::BeforeSave
            | Self::BeforePost => true,
            Self::BeforeRun | Self::BeforeTool | Self::RunEnded | Self::ApprovalDecided => false,
        }
    }

    /// Whether an answer may come out otherwise than its model says it, so that it is not shown while it is written.
    #[must_use]
    pub fn holds_answers_back(self) -> bool {
        match self {
            Self::AfterModel | Self::BeforeSave | Self::BeforePost => true,
            Self::BeforeRun
            | Self::BeforeModel
            | Self::BeforeTool
            | Self::AfterTool
            | Self::RunEnded
            | Self::ApprovalDecided => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for point in HookPoint::ALL {
            assert_eq!(HookPoint::from_name(point.name()), Some(point));
        }
        assert_eq!(HookPoint::from_name("before_lunch"), None);
    }
}
