//! Rust text to tokens with lines: enough of the language to find paths, attributes and match arms. It knows comments, strings, raw strings,
//! characters and lifetimes, so that none of them is taken for code.

/// A token and the line it starts on, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub line: usize,
}

/// Kinds of token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Ident(String),
    /// `::`, `=>` or a single character.
    Punct(&'static str),
    /// A string, character, number or lifetime.
    Other,
}

impl Token {
    /// Whether it is this word.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Ident(w) if w == word)
    }

    /// Whether it is this punctuation.
    pub fn is(&self, punct: &str) -> bool {
        matches!(&self.kind, Kind::Punct(p) if *p == punct)
    }

    /// The word, when it is one.
    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(w) => Some(w),
            Kind::Punct(_) | Kind::Other => None,
        }
    }
}

const PUNCTS: [&str; 26] = [
    "::", "=>", "{", "}", "(", ")", "[", "]", "<", ">", ",", ";", ":", ".", "#", "!", "*", "=", "&", "|", "-", "+",
    "/", "$", "?", "@",
];

/// Tokens of a file.
pub fn lex(text: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next_token() {
        tokens.push(token);
    }
    tokens
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn next_token(&mut self) -> Option<Token> {
        self.skip_blank();
        let line = self.line;
        let c = self.peek(0)?;
        let kind = if c == '"' {
            self.string();
            Kind::Other
        } else if c == '\'' {
            self.quote();
            Kind::Other
        } else if c.is_ascii_digit() {
            self.number();
            Kind::Other
        } else if c == '_' && !self.peek(1).is_some_and(is_word) {
            self.bump();
            Kind::Punct("_")
        } else if is_word(c) {
            self.word()
        } else {
            self.punct()
        };
        Some(Token { kind, line })
    }

    fn skip_blank(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('/')) => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                (Some('/'), Some('*')) => self.block_comment(),
                (Some(c), _) if c.is_whitespace() => {
                    self.bump();
                }
                _ => return,
            }
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.bump();
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.bump();
                }
                (None, _) => return,
                _ => {}
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.bump();
        while let Some(c) = self.bump() {
            match c {
                '\\' => {
                    self.bump();
                }
                '"' => return,
                _ => {}
            }
        }
    }

    /// A raw string from its first `#` or `"`.
    fn raw_string(&mut self) {
        let mut hashes = 0;
        while self.peek(0) == Some('#') {
            hashes += 1;
            self.bump();
        }
        self.bump();
        while let Some(c) = self.bump() {
            if c == '"' && (0..hashes).all(|n| self.peek(n) == Some('#')) {
                for _ in 0..hashes {
                    self.bump();
                }
                return;
            }
        }
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        self.bump();
        match (self.peek(0), self.peek(1)) {
            (Some('\\'), _) => {
                self.bump();
                self.bump();
                while self.bump().is_some_and(|c| c != '\'') {}
            }
            (Some(_), Some('\'')) => {
                self.bump();
                self.bump();
            }
            _ => {
                while self.peek(0).is_some_and(is_word) {
                    self.bump();
                }
            }
        }
    }

    fn number(&mut self) {
        while let Some(c) = self.peek(0) {
            let fraction = c == '.' && self.peek(1).is_some_and(|d| d.is_ascii_digit());
            if !is_word(c) && !fraction {
                return;
            }
            self.bump();
        }
    }

    fn word(&mut self) -> Kind {
        let mut word = String::new();
        while let Some(c) = self.peek(0).filter(|c| is_word(*c)) {
            word.push(c);
            self.bump();
        }
        match (word.as_str(), self.peek(0), self.peek(1)) {
            ("r" | "br" | "cr", Some('"'), _) | ("r" | "br" | "cr", Some('#'), Some('"' | '#')) => {
                self.raw_string();
                Kind::Other
            }
            ("b" | "c", Some('"'), _) => {
                self.string();
                Kind::Other
            }
            ("b", Some('\''), _) => {
                self.quote();
                Kind::Other
            }
            ("r", Some('#'), _) => {
                self.bump();
                self.word()
            }
            _ => Kind::Ident(word),
        }
    }

    fn punct(&mut self) -> Kind {
        let two: String = self.chars.iter().skip(self.at).take(2).collect();
        let found = PUNCTS.iter().find(|p| two.starts_with(**p));
        for _ in 0..found.map_or(1, |p| p.len()) {
            self.bump();
        }
        found.map_or(Kind::Other, |p| Kind::Punct(p))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
