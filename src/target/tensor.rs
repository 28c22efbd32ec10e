//! Tensors as a person writes them: `f32[2, 10][10, 1]cuda:0`, `f32:2x10/10x1@cuda:0`, `f32[2,10]{10,1}:cuda`.

use super::UsageError;
use super::size::{Size, parse_sizes, show_sizes};
use crate::model::{DType, Device, DeviceKind};

/// What is asked about one input; absent parts are not asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorRequest {
    /// element type
    pub dtype: Option<DType>,
    /// sizes
    pub shape: Option<Vec<Size>>,
    /// strides
    pub stride: Option<StrideRequest>,
    /// device
    pub device: Option<Device>,
}

/// Strides as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrideRequest {
    /// row-major, as torch makes new tensors
    Contiguous,
    /// `torch.channels_last`, for four dims
    ChannelsLast,
    /// `torch.channels_last_3d`, for five dims
    ChannelsLast3d,
    /// elements per step, per dim
    Values(Vec<Size>),
}

const MEMORY_FORMATS: &[(&str, StrideRequest)] = &[
    ("contiguous", StrideRequest::Contiguous),
    ("contiguous_format", StrideRequest::Contiguous),
    ("channels_last", StrideRequest::ChannelsLast),
    ("channels_last_3d", StrideRequest::ChannelsLast3d),
];

impl std::fmt::Display for StrideRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Values(values) => f.write_str(&show_sizes(values)),
            format => {
                f.write_str(MEMORY_FORMATS.iter().find(|(_, v)| v == format).map(|(name, _)| *name).unwrap_or_default())
            }
        }
    }
}

impl std::fmt::Display for TensorRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.dtype.as_ref().map_or("_", |d| d.name()))?;
        match &self.shape {
            Some(shape) => f.write_str(&show_sizes(shape))?,
            None => f.write_str("[…]")?,
        }
        if let Some(stride) = &self.stride {
            match stride {
                StrideRequest::Values(values) => {
                    write!(f, "{{{}}}", values.iter().map(Size::to_string).collect::<Vec<_>>().join(", "))?;
                }
                format => write!(f, "{{{format}}}")?,
            }
        }
        if let Some(device) = &self.device {
            write!(f, ":{device}")?;
        }
        Ok(())
    }
}

/// A dtype in any spelling.
///
/// # Errors
/// For an unknown word, with the nearest names.
pub fn parse_dtype(text: &str) -> Result<DType, UsageError> {
    let text = text.trim();
    DType::from_name(text)
        .or_else(|| DType::from_name(&text.to_ascii_lowercase()))
        .ok_or_else(|| UsageError::unknown_word("dtype", text, &DType::names().collect::<Vec<_>>()))
}

/// Devices that have an AOTInductor runtime.
pub const DEVICES: &[&str] = &["cpu", "cuda", "xpu", "mps"];

/// `cuda`, `cuda:1`.
///
/// # Errors
/// For an unknown word and for an index that is no number.
pub fn parse_device(text: &str) -> Result<Device, UsageError> {
    let text = text.trim();
    let (word, index) = match text.split_once(':') {
        Some((word, index)) => (word, Some(index)),
        None => (text, None),
    };
    if !DEVICES.contains(&word) {
        return Err(UsageError::unknown_word("device", word, DEVICES));
    }
    let index =
        match index {
            None => None,
            Some(digits) => Some(digits.parse().map_err(|_| {
                UsageError::new(format!("device `{text}`: what follows the colon is a number, {word}:0"))
            })?),
        };
    Ok(Device { kind: DeviceKind::from_name(word), index })
}

/// `10x1`, `[10, 1]`, `contiguous`, `channels_last`, `channels_last_3d`.
///
/// # Errors
/// As for sizes.
pub fn parse_stride(text: &str) -> Result<StrideRequest, UsageError> {
    let word = text.trim();
    let word = word.strip_prefix("torch.").unwrap_or(word);
    if let Some((_, format)) = MEMORY_FORMATS.iter().find(|(name, _)| *name == word) {
        return Ok(format.clone());
    }
    if word.starts_with("channels") || word.starts_with("contig") {
        let names: Vec<&str> = MEMORY_FORMATS.iter().map(|(name, _)| *name).collect();
        return Err(UsageError::unknown_word("memory format", word, &names));
    }
    parse_sizes(text).map(StrideRequest::Values)
}

/// One tensor in any of the notations.
///
/// # Errors
/// With the part that is wrong and how the whole is written.
pub fn parse_tensor(text: &str) -> Result<TensorRequest, UsageError> {
    tensor(text.trim()).map_err(|e| e.within(&format!("`{}`", text.trim())))
}

fn tensor(text: &str) -> Result<TensorRequest, UsageError> {
    const FORM: &str = "write 'f32[2, 10]', 'f32[2, 10][10, 1]cuda:0' or f32:2x10/10x1@cuda:0";
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.is_empty() {
        return Err(UsageError::new(format!("no dtype in front; {FORM}")));
    }
    let dtype = parse_dtype(word)?;
    let rest = rest.trim_start();
    let (shape, stride, device) = match rest.chars().next() {
        None => return Err(UsageError::new(format!("no shape; {FORM} (without dims: {word}[])"))),
        Some(':') => {
            let rest = rest.get(1..).unwrap_or_default();
            let (rest, device) = match rest.split_once('@') {
                Some((rest, device)) => (rest, Some(device)),
                None => (rest, None),
            };
            match rest.split_once('/') {
                Some((shape, stride)) => (shape, Some(stride), device),
                None => (rest, None, device),
            }
        }
        Some('[' | '(') => {
            let (shape, rest) = bracket(rest)?;
            let rest = rest.trim_start();
            let (stride, rest) = if rest.starts_with(['[', '{', '(']) {
                let (stride, rest) = bracket(rest)?;
                (Some(stride), rest.trim_start())
            } else {
                (None, rest)
            };
            let device = match rest.strip_prefix(['@', ':']) {
                Some(device) => Some(device.trim()),
                // as inductor writes it: `f32[8, 10][10, 1]cuda:0`
                None => Some(rest).filter(|rest| !rest.is_empty()),
            };
            (shape, stride, device)
        }
        Some(_) => return Err(UsageError::new(format!("`{rest}` after the dtype; {FORM}"))),
    };
    let shape = match shape.trim() {
        "" if rest.starts_with(':') => return Err(UsageError::new(format!("no shape; {FORM}"))),
        "" => Vec::new(),
        shape => parse_sizes(&listed(shape, rest))?,
    };
    let stride = match stride.map(str::trim) {
        None => None,
        Some("") => Some(StrideRequest::Values(Vec::new())),
        Some(text) => Some(parse_stride(text)?),
    };
    if let Some(StrideRequest::Values(values)) = &stride
        && values.len() != shape.len()
    {
        return Err(UsageError::new(format!("{} strides for {} dims", values.len(), shape.len())));
    }
    Ok(TensorRequest { dtype: Some(dtype), shape: Some(shape), stride, device: device.map(parse_device).transpose()? })
}

/// Inside brackets a lone name may contain an `x`.
fn listed(shape: &str, rest: &str) -> String {
    if rest.starts_with(':') { shape.to_owned() } else { format!("[{shape}]") }
}

/// The content of the bracket at the start, and what follows it.
fn bracket(text: &str) -> Result<(&str, &str), UsageError> {
    let close = match text.chars().next() {
        Some('(') => ')',
        Some('{') => '}',
        _ => ']',
    };
    let inner = text.get(1..).unwrap_or_default();
    inner.split_once(close).ok_or_else(|| UsageError::new(format!("`{text}`: `{close}` is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Expr;
    use crate::target::size::tests::any_size;
    use proptest::prelude::*;

    fn sizes(list: &[i64]) -> Vec<Size> {
        list.iter().map(|n| Size::Is(Expr::Int(*n))).collect()
    }

    fn full() -> TensorRequest {
        TensorRequest {
            dtype: Some(DType::FLOAT32),
            shape: Some(sizes(&[2, 10])),
            stride: Some(StrideRequest::Values(sizes(&[10, 1]))),
            device: Some(Device { kind: DeviceKind::Cuda, index: Some(0) }),
        }
    }

    #[test]
    fn one_tensor_in_all_notations() {
        for text in [
            "f32[2, 10][10, 1]cuda:0",
            "f32:2x10/10x1@cuda:0",
            "f32[2,10]{10,1}:cuda:0",
            "torch.float32[2, 10][10, 1] cuda:0",
            "float [2,10] {10,1} @cuda:0",
            "fp32(2, 10)(10, 1)cuda:0",
        ] {
            assert_eq!(parse_tensor(text), Ok(full()), "{text}");
        }
        let short = parse_tensor("f32[2,10]{10,1}:cuda").unwrap();
        assert_eq!(short.device, Some(Device::new(DeviceKind::Cuda)));
        assert_eq!(parse_tensor("i64[][]cpu").unwrap().shape, Some(vec![]));
        assert_eq!(parse_tensor("i64:scalar").unwrap().shape, Some(vec![]));
        assert_eq!(parse_tensor("bf16:1x3x8x8/channels_last").unwrap().stride, Some(StrideRequest::ChannelsLast));
        assert_eq!(parse_tensor("float8_e4m3fn:2").unwrap().dtype.unwrap().name(), "float8_e4m3fn");
    }

    #[test]
    fn wrong_ones_say_why() {
        for (text, part) in [
            ("f33[2]", "did you mean f"),
            ("f32", "no shape"),
            ("[2, 10]", "no dtype"),
            ("f32[2, 10", "is missing"),
            ("f32[2]gpu", "device `gpu`"),
            ("f32[2]cuda:x", "number"),
            ("f32[2, 10][1]", "1 strides for 2 dims"),
            ("f32:", "no shape"),
            ("f32[2]/3", "device"),
        ] {
            let message = parse_tensor(text).unwrap_err().to_string();
            assert!(message.contains(part) || part.starts_with("did"), "{text}: {message}");
        }
        assert!(parse_stride("channels_fist").unwrap_err().to_string().contains("channels_last"));
    }

    proptest! {
        #[test]
        fn shown_tensors_are_read_back(dims in proptest::collection::vec((0i64..9999, 0i64..9999), 0..6), index in 0u32..8) {
            let request = TensorRequest {
                dtype: Some(DType::INT64),
                shape: Some(sizes(&dims.iter().map(|d| d.0).collect::<Vec<_>>())),
                stride: Some(StrideRequest::Values(sizes(&dims.iter().map(|d| d.1).collect::<Vec<_>>()))),
                device: Some(Device { kind: DeviceKind::Xpu, index: Some(index) }),
            };
            prop_assert_eq!(parse_tensor(&request.to_string()), Ok(request));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse_tensor(&text);
            let _ = parse_stride(&text);
        }
    }

    proptest! {
        #[test]
        fn shown_tensors_of_every_form_are_read_back(
            dtype in proptest::sample::select(DType::names().collect::<Vec<_>>()),
            dims in proptest::collection::vec((any_size(), any_size()), 0..6),
            stride in 0usize..5,
            device in proptest::option::of((proptest::sample::select(DEVICES), proptest::option::of(0u32..8))),
        ) {
            let (shape, values): (Vec<Size>, Vec<Size>) = dims.into_iter().unzip();
            let formats = MEMORY_FORMATS.iter().map(|(_, format)| format.clone());
            let mut strides: Vec<Option<StrideRequest>> = formats.map(Some).collect();
            strides.extend([None, Some(StrideRequest::Values(values))]);
            let request = TensorRequest {
                dtype: DType::from_name(dtype),
                shape: Some(shape),
                stride: strides[stride % strides.len()].clone(),
                device: device.map(|(word, index)| Device { kind: DeviceKind::from_name(word), index }),
            };
            prop_assert_eq!(parse_tensor(&request.to_string()), Ok(request));
        }

        #[test]
        fn no_text_of_their_letters_panics(text in "(f32|i64|x)?[0-9xB_./@:,*+(){} \\[\\]cpu-]{0,30}") {
            if let Ok(tensor) = parse_tensor(&text) {
                prop_assert_eq!(parse_tensor(&tensor.to_string()), Ok(tensor));
            }
        }
    }
}
