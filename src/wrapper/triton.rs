//! The Python text of a Triton kernel, which 2.8 and newer keep in a comment of its launch helper.
//!
//! Only literals are taken out; it is not read as Python (format reference, 5.10).

use super::literal;
use super::text::{between, is_word};

/// Reads the comment line by line.
#[derive(Debug, Default)]
pub struct Reader {
    in_comment: bool,
    /// texts of `tl.device_assert`
    pub assertions: Vec<String>,
    /// `type` of the compile device
    pub device: Option<String>,
    /// `cc` of the compile device: `90`, `gfx942`
    pub compute_capability: Option<String>,
    /// threads of a warp of the compile device
    pub warp_size: Option<u32>,
}

impl Reader {
    /// Takes a trimmed line; `true` when it belongs to the comment.
    pub fn line(&mut self, text: &str) -> bool {
        if !self.in_comment {
            self.in_comment = text == "/*";
            return self.in_comment;
        }
        if text == "*/" {
            self.in_comment = false;
        } else if text.contains("tl.device_assert(") {
            if let Some(message) = literal::last_in(text)
                && !self.assertions.contains(&message)
            {
                self.assertions.push(message);
            }
        } else if let Some(properties) = between(text, "DeviceProperties(", ")")
            && self.device.is_none()
        {
            let value = |key: &str| {
                let (_, rest) = properties.split_once(key)?;
                let rest = rest.trim_start_matches('\'');
                rest.split(|c| !is_word(c)).next().filter(|w| !w.is_empty()).map(str::to_owned)
            };
            self.device = value("type=");
            self.compute_capability = value("cc=");
            self.warp_size = value("warp_size=").and_then(|w| w.parse().ok());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_assertions_and_the_device() {
        let mut reader = Reader::default();
        for line in [
            "/*",
            "triton_meta={'device': DeviceProperties(type='cuda', index=0, cc=90, major=9, warp_size=32), 'constants': {}}",
            "tl.device_assert(((0 <= tmp5) & (tmp5 < ks0)) | ~(xmask), \"index out of bounds: 0 <= tmp5 < ks0\")",
            "''', device_str='cuda')",
            "*/",
        ] {
            assert!(reader.line(line), "{line}");
        }
        assert!(!reader.line("uint32_t grid_0 = 1;"));
        assert_eq!(reader.assertions, ["index out of bounds: 0 <= tmp5 < ks0"]);
        assert_eq!((reader.device.as_deref(), reader.compute_capability.as_deref()), (Some("cuda"), Some("90")));
        assert_eq!(reader.warp_size, Some(32));
    }
}
