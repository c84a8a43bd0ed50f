//! What a program gives with its question, for the prompt of that question alone.

/// What a program gives with its question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// What was said before, as the program has it, the oldest first. If there is any, it stands in the prompt in place
    /// of what is stored of the conversation.
    pub earlier: Vec<GivenLine>,
    /// What the program says of the conversation: information for the model, never instructions.
    pub context: Option<String>,
    /// How the program calls its user: information, too.
    pub user: Option<String>,
    /// Text behind the agent's instructions, from a token that may give any.
    pub instructions: Option<String>,
    /// Only these of the agent's tools may be called.
    pub tools: Option<Vec<String>>,
}

impl Given {
    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many bytes its words have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.context, &self.user, &self.instructions];
        let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
        self.earlier
            .iter()
            .map(|line| line.text.len())
            .sum::<usize>()
            + texts
    }
}

/// Something that was said before, as a program has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenLine {
    /// Who said it.
    pub speaker: GivenSpeaker,
    /// What was said.
    pub text: String,
}

/// Who said something, as a program has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenSpeaker {
    /// Whoever asks.
    User,
    /// The agent.
    Agent,
}

impl GivenSpeaker {
    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
        }
    }

    /// The speaker of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::User, Self::Agent]
            .into_iter()
            .find(|speaker| speaker.name() == name)
    }
}
