//! How an artefact is going to be loaded: the flags' and files' notations, and what they mean.

pub mod advisories;
mod bytes;
pub mod cases;
mod config;
pub mod cpu;
pub mod gpu;
pub mod host;
pub mod libtorch;
mod op_library;
pub mod project;
pub mod release_tables;
mod requests;
pub mod size;
mod tensor;
mod usage;
mod version;
mod weights_file;
mod which;

pub use bytes::parse_bytes;
pub use cases::InputCase;
pub use config::{HostUnknown, LoadConfig, Loader};
pub use op_library::OpLibrary;
pub use requests::{InputRequest, InputRequests, InputTexts, Resolved, parse_dim};
pub use size::{Size, Span};
pub use tensor::{DEVICES, StrideRequest, TensorRequest, parse_device, parse_dtype, parse_stride, parse_tensor};
pub use usage::{UsageError, near_matches};
pub use version::{Build, PlatformName, TorchVersion, Version};
pub use weights_file::{WeightsFile, WeightsTensor};
pub use which::{Which, find_input, split_which};
