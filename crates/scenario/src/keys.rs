//! Declared keys: the error messages, the JSON Schema and the reference page all come from the same tables.

/// One key of a table in a scenario file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// In force unless set, as it would be written; `None`: required, or off, as `help` says.
    pub default: Option<&'static str>,
    /// It must be set.
    pub required: bool,
    /// Zero is not accepted (times, sizes).
    pub positive: bool,
    /// One sentence.
    pub help: &'static str,
}

/// What a key accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number in the closed interval.
    Count {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A real number in the closed interval.
    Number {
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// A time with its unit.
    Time,
    /// A rate with its unit; never zero.
    Rate,
    /// A size with its unit.
    Size,
    /// A queue length in packets or bytes.
    Queue,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// A text or a list of texts.
    Texts,
    /// A list of whole numbers, or how many.
    Seeds,
    /// Sizes drawn one by one: a constant, `{ uniform = [..] }`, `{ exponential = .. }`, or the name or path of a distribution.
    Sizes,
    /// Times drawn one by one, likewise.
    Times,
    /// A list of tables with these keys.
    Tables(&'static [Key]),
    /// A table whose keys are names the user chooses, each with a text or a list of texts.
    Groups,
    /// A `[cc]` table.
    Cc,
    /// A `[stack]` table.
    Stack,
    /// A queue discipline with its parameters.
    Discipline,
}

impl Kind {
    /// What to write, with its article.
    pub fn expects(&self) -> String {
        match self {
            Kind::Count { min, max: u64::MAX } => format!("a whole number, at least {min}"),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Number { min, max } if *max == f64::INFINITY => format!("a number, at least {min}"),
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::Time => "a time such as \"50us\" (ps, ns, us, ms, s, min)".to_owned(),
            Kind::Rate => "a rate such as \"10Gbps\" (bps, kbps, Mbps, Gbps, Tbps)".to_owned(),
            Kind::Size => "a size such as \"256KB\" (B, KB, MB, GB, KiB, MiB, GiB)".to_owned(),
            Kind::Queue => "a queue length such as \"100p\" (packets) or \"350KB\"".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Text => "text in quotes".to_owned(),
            Kind::Texts => "a text in quotes or a list of them".to_owned(),
            Kind::Seeds => "a count such as 10 or a list such as [1, 2, 3]".to_owned(),
            Kind::Sizes => "a size such as \"8KB\", { uniform = [\"2KB\", \"10KB\"] }, { exponential = \"8KB\" }, or the name of a \
                            distribution such as \"websearch_pfabric\""
                .to_owned(),
            Kind::Times => "a time such as \"1ms\", { uniform = [\"1ms\", \"2ms\"] }, { exponential = \"1ms\" }, or the name of a \
                            distribution such as \"trim_http_train_gap\""
                .to_owned(),
            Kind::Tables(_) => "a list of tables".to_owned(),
            Kind::Groups => "a table of names, each with a list of hosts".to_owned(),
            Kind::Cc => "a table such as { name = \"dctcp\" }".to_owned(),
            Kind::Stack => "a table such as { profile = \"linux\" }".to_owned(),
            Kind::Discipline => "a table such as { name = \"red\" }".to_owned(),
        }
    }
}

impl Key {
    const fn new(name: &'static str, kind: Kind, help: &'static str) -> Key {
        Key { name, kind, default: None, required: false, positive: false, help }
    }
    /// A whole number, at least `min`.
    pub const fn count(name: &'static str, min: u64, help: &'static str) -> Key {
        Key::new(name, Kind::Count { min, max: u64::MAX }, help)
    }
    /// A whole number in an interval.
    pub const fn count_to(name: &'static str, min: u64, max: u64, help: &'static str) -> Key {
        Key::new(name, Kind::Count { min, max }, help)
    }
    /// A real number in an interval.
    pub const fn number(name: &'static str, min: f64, max: f64, help: &'static str) -> Key {
        Key::new(name, Kind::Number { min, max }, help)
    }
    /// A time.
    pub const fn time(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Time, help)
    }
    /// A rate.
    pub const fn rate(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Rate, help)
    }
    /// A size.
    pub const fn size(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Size, help)
    }
    /// A queue length.
    pub const fn queue(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Queue, help)
    }
    /// A switch.
    pub const fn flag(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Flag, help)
    }
    /// A choice.
    pub const fn word(name: &'static str, words: &'static [&'static str], help: &'static str) -> Key {
        Key::new(name, Kind::Word(words), help)
    }
    /// Text.
    pub const fn text(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Text, help)
    }
    /// A text or several.
    pub const fn texts(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Texts, help)
    }
    /// Sizes drawn one by one.
    pub const fn sizes(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Sizes, help)
    }
    /// Times drawn one by one.
    pub const fn times(name: &'static str, help: &'static str) -> Key {
        Key::new(name, Kind::Times, help)
    }
    /// A key of any other kind.
    pub const fn of(name: &'static str, kind: Kind, help: &'static str) -> Key {
        Key::new(name, kind, help)
    }
    /// States the default.
    pub const fn default(mut self, text: &'static str) -> Key {
        self.default = Some(text);
        self
    }
    /// Must be set.
    pub const fn required(mut self) -> Key {
        self.required = true;
        self
    }
    /// Refuses zero.
    pub const fn positive(mut self) -> Key {
        self.positive = true;
        self
    }
}
