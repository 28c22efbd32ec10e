//! JSON text under caps, and flat objects with the keys that a map would hide.

use crate::error::{Error, Result};
use crate::limits;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// Parses any JSON. Depth is bounded by serde_json itself ([`limits::JSON_DEPTH`]).
pub(super) fn parse(text: &[u8]) -> Result<Value> {
    parse_as(text)
}

/// Parses into a type; what the type does not name is skipped.
pub(super) fn parse_as<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T> {
    if text.len() as u64 > limits::JSON_BYTES {
        return Err(Error::limit(format!("{} bytes of JSON, more than {}", text.len(), limits::JSON_BYTES)));
    }
    // what a value takes in memory has little to do with its text: an object of two characters takes hundreds of bytes
    let objects = memchr::memchr_iter(b'{', text).count();
    let values = memchr::memchr2_iter(b'[', b',', text).count().saturating_add(objects);
    for (count, what, cap) in [(objects, "objects", limits::JSON_OBJECTS), (values, "values", limits::JSON_VALUES)] {
        if count > cap {
            return Err(Error::limit(format!("{count} {what} of JSON, more than {cap}")));
        }
    }
    serde_json::from_slice(text).map_err(|e| {
        // a byte order mark, NaN and bytes that are not UTF-8 end here too
        Error::damaged(format!("is no JSON as it should be: {e}"))
    })
}

/// An object as a list: in file order, repeated keys kept.
#[derive(Debug)]
pub(super) struct Pairs(pub Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    if pairs.len() >= limits::TENSORS {
                        return Err(serde::de::Error::custom(format!("more than {} keys", limits::TENSORS)));
                    }
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_has_a_border() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(deep(limits::JSON_DEPTH).as_bytes()).is_ok());
        assert!(parse(deep(limits::JSON_DEPTH + 1).as_bytes()).is_err());
        assert!(parse("[".repeat(5_000_000).as_bytes()).is_err());
    }

    #[test]
    fn objects_have_their_border() {
        let list = |n: usize| format!("[{}{{}}]", "{},".repeat(n - 1));
        assert!(parse(list(limits::JSON_OBJECTS).as_bytes()).is_ok());
        assert!(parse(list(limits::JSON_OBJECTS + 1).as_bytes()).unwrap_err().to_string().contains("objects of JSON"));
    }

    #[test]
    fn values_have_their_border() {
        let list = |n: usize| format!("[{}0]", "0,".repeat(n - 1));
        assert!(parse(list(limits::JSON_VALUES).as_bytes()).is_ok());
        assert!(parse(list(limits::JSON_VALUES + 1).as_bytes()).unwrap_err().to_string().contains("values of JSON"));
    }

    #[test]
    fn repeated_keys_are_kept() {
        let Pairs(pairs) = parse_as(br#"{"b": "1", "a": 2, "b": null}"#).unwrap();
        assert_eq!(pairs.iter().map(|p| p.0.as_str()).collect::<Vec<_>>(), ["b", "a", "b"]);
    }

    #[test]
    fn bytes_have_a_border() {
        // nothing but NULs: at the border it is looked at
        let of = |len: u64| parse(&vec![0; usize::try_from(len).unwrap()]).unwrap_err();
        assert_eq!(of(limits::JSON_BYTES).kind(), crate::error::ErrorKind::Damaged);
        let refused = of(limits::JSON_BYTES + 1);
        assert_eq!(refused.kind(), crate::error::ErrorKind::Limit);
        assert!(refused.message().contains("more than 67108864"), "{refused}");
    }

    #[test]
    fn keys_have_a_border() {
        let of = |count: usize| {
            let rows: Vec<String> = (0..count).map(|n| format!("\"{n}\":0")).collect();
            parse_as::<Pairs>(format!("{{{}}}", rows.join(",")).as_bytes()).map(|pairs| pairs.0.len())
        };
        assert_eq!(of(limits::TENSORS).unwrap(), limits::TENSORS);
        assert!(of(limits::TENSORS + 1).unwrap_err().message().contains("more than 65536 keys"));
    }
}
