//! The values of a table, each of its kind.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeValue;

use super::{At, Reader, Section, kind_of};
use crate::config::words;
use crate::domain::units::Bytes;

impl Section<'_> {
    /// Text, without control characters, not empty, not a secret.
    pub fn text(&mut self, r: &mut Reader<'_>, key: &'static str) -> Option<At<String>> {
        let wanted = format!("text in quotes: {key} = \"…\"");
        let found = self.typed(r, key, &wanted, |v| v.as_str().map(str::to_owned))?;
        self.good_text(r, key, found)
    }

    /// Text that is one.
    pub(super) fn good_text(&self, r: &mut Reader<'_>, key: &str, found: At<String>) -> Option<At<String>> {
        let (message, fix) = if found.value.trim().is_empty() {
            (format!("`{key}` is empty"), "write a value, or leave the line out")
        } else if found.value.chars().any(char::is_control) {
            (
                format!("`{key}` holds a control character"),
                "write it on one line, without escapes",
            )
        } else if words::looks_secret(&found.value) {
            (format!("`{key}` holds what looks like a secret"), words::SECRET_FIX)
        } else {
            return Some(found);
        };
        r.problem(found.at, &self.key(key), message, fix);
        None
    }

    /// Text that a rule accepts; the rule gives what is wrong and what to write instead.
    pub fn text_by(
        &mut self,
        r: &mut Reader<'_>,
        key: &'static str,
        rule: impl Fn(&str) -> Result<(), words::Wrong>,
    ) -> Option<At<String>> {
        let found = self.text(r, key)?;
        match rule(&found.value) {
            Ok(()) => Some(found),
            Err(wrong) => {
                r.problem(found.at, &self.key(key), format!("{key}: {}", wrong.what), wrong.fix);
                None
            }
        }
    }

    /// A list of texts, each checked as [`Section::text`] does.
    pub fn texts(&mut self, r: &mut Reader<'_>, key: &'static str) -> Option<Vec<At<String>>> {
        let wanted = format!("a list of texts: {key} = [\"…\"]");
        let list = self.typed(r, key, &wanted, DeValue::as_array)?;
        let mut texts = Vec::new();
        for value in list.value {
            let at = value.span().start;
            match value.get_ref().as_str() {
                Some(text) => texts.extend(self.good_text(
                    r,
                    key,
                    At {
                        value: text.to_owned(),
                        at,
                    },
                )),
                None => {
                    let message = format!("`{key}` holds {}", kind_of(value.get_ref()));
                    r.problem(at, &self.key(key), message, format!("write {wanted}"));
                }
            }
        }
        Some(texts)
    }

    /// A list of texts without their places; empty when the key is absent.
    pub fn plain_texts(&mut self, r: &mut Reader<'_>, key: &'static str) -> Vec<String> {
        let texts = self.texts(r, key).unwrap_or_default();
        texts.into_iter().map(|t| t.value).collect()
    }

    /// `true` or `false`.
    pub fn flag(&mut self, r: &mut Reader<'_>, key: &'static str) -> Option<bool> {
        let wanted = format!("{key} = true or {key} = false");
        self.typed(r, key, &wanted, DeValue::as_bool).map(|f| f.value)
    }

    /// A whole number within a range.
    pub fn number(&mut self, r: &mut Reader<'_>, key: &'static str, range: RangeInclusive<u32>) -> Option<At<u32>> {
        let wanted = "a whole number, without quotes";
        let found = self.typed(r, key, wanted, DeValue::as_integer)?;
        let number = i64::from_str_radix(found.value.as_str(), found.value.radix()).ok();
        match number.and_then(|n| u32::try_from(n).ok()).filter(|n| range.contains(n)) {
            Some(value) => Some(At { value, at: found.at }),
            None => {
                let message = format!("`{key}` is {}", found.value);
                let fix = format!("write a number from {} to {}", range.start(), range.end());
                r.problem(found.at, &self.key(key), message, fix);
                None
            }
        }
    }

    /// An amount in GiB, whole or with a fraction.
    pub fn gib(&mut self, r: &mut Reader<'_>, key: &'static str, range: RangeInclusive<u32>) -> Option<Bytes> {
        let wanted = "a number, without quotes, such as 4 or 4.5";
        let found = self.typed(r, key, wanted, |v| match v {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string()),
            DeValue::Float(n) => Some(n.as_str().to_owned()),
            DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                None
            }
        })?;
        let (least, most) = (f64::from(*range.start()), f64::from(*range.end()));
        let number: Option<f64> = found.value.parse().ok().filter(|n| (least..=most).contains(n));
        if number.is_none() {
            let message = format!("`{key}` is {}", found.value);
            r.problem(
                found.at,
                &self.key(key),
                message,
                format!("write a number of GiB from {least} to {most}"),
            );
        }
        number.map(Bytes::from_gib)
    }

    /// A TCP port.
    pub fn port(&mut self, r: &mut Reader<'_>, key: &'static str) -> Option<u16> {
        let number = self.number(r, key, 1..=u32::from(u16::MAX))?;
        u16::try_from(number.value).ok()
    }

    /// A duration such as `"2m"`.
    pub fn duration(&mut self, r: &mut Reader<'_>, key: &'static str) -> Option<Duration> {
        let wanted = format!("a duration in quotes: {key} = \"90s\"");
        let found = self.typed(r, key, &wanted, |v| v.as_str().map(str::to_owned))?;
        match words::duration(&found.value) {
            Ok(duration) => Some(duration),
            Err(wrong) => {
                r.problem(found.at, &self.key(key), format!("`{key}` {}", wrong.what), wrong.fix);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_may_have_a_fraction_and_what_is_none_is_told_so() {
        let cases = [
            ("4", Ok(4 << 30)),
            ("4.5", Ok(9 << 29)),
            ("0", Ok(0)),
            ("9000", Err("write a number of GiB from 0 to 4096")),
            ("-1.0", Err("write a number of GiB from 0 to 4096")),
            ("nan", Err("write a number of GiB from 0 to 4096")),
            ("\"4\"", Err("write a number, without quotes, such as 4 or 4.5")),
        ];
        for (text, wanted) in cases {
            let text = format!("floor = {text}");
            let mut r = Reader::new("x", &text);
            let document = r.document();
            let got = Section::root(&document).gib(&mut r, "floor", 0..=4096);
            let fix = r.into_problems().into_iter().map(|p| p.fix).next();
            match wanted {
                Ok(bytes) => assert_eq!((got, fix), (Some(Bytes(bytes)), None), "{text}"),
                Err(why) => assert_eq!((got, fix.as_deref()), (None, Some(why)), "{text}"),
            }
        }
    }
}
