//! Constants: are their bytes there, do the caller's weights fit, and does the GPU have room?

mod codes;
mod memory;
mod weights_file;

pub use codes::CODES;

use super::{Judgement, Subject};
use crate::model::{Constant, DeviceKind, Kind, Release, WeightsLocation};
use crate::report::{Finding, Level, Outcome};

/// Appended weights begin at a multiple of this, or the runtime refuses them (aoti_runtime/model_base.h).
const APPENDED_ALIGNMENT: u64 = 16_384;
/// Largest page size of common kernels (aarch64 with 64 KiB pages).
const LARGE_PAGE: u64 = 65_536;
/// Alignment of each constant in the blob since 2.4, for models with constants on the CPU.
const CONSTANT_ALIGNMENT: u64 = 64;

/// All that concerns constants.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    check_bytes(subject, judgement);
    check_offset(subject, judgement);
    check_alignment(subject, judgement);
    weights_file::check(subject, judgement);
    memory::check(subject, judgement);
}

/// Constants that have bytes of their own.
fn stored<'a>(subject: &Subject<'a>) -> impl Iterator<Item = &'a Constant> + use<'a> {
    subject.model.constants.iter().flatten().filter(|c| c.folded != Some(true))
}

fn check_bytes(subject: &Subject, judgement: &mut Judgement) {
    let weights = &subject.model.weights;
    let path = subject.path("weights");
    let place = weights.member.as_deref().unwrap_or("the library");
    match weights.location {
        Some(WeightsLocation::Absent) => {
            let message = "the weights are left out on purpose: the caller loads them before the first run";
            judgement.push(
                Finding::new("weights-absent", Outcome::Warn, path, message)
                    .fix("load them with load_constants or update_constant_buffer; --weights FILE compares them"),
            );
        }
        Some(WeightsLocation::Blob) if is_without_blob(subject) => {
            let message = "the weights are in a blob file that is not here: the first run reads no valid memory";
            // a bare library's caller may have the blob elsewhere; to a package nobody adds it
            let (outcome, fix) = match subject.artifact.kind {
                Kind::Library => (Outcome::Warn, "deploy the blob with the library, and hand it over after loading"),
                _ => (Outcome::Fail, "package again"),
            };
            judgement.push(Finding::new("weights-blob-missing", outcome, path, message).fix(fix));
        }
        Some(WeightsLocation::None) => {
            judgement.push(Finding::new(
                "weights-truncated",
                Outcome::Pass,
                path,
                "the model has no constants with bytes",
            ));
        }
        Some(location) if location != WeightsLocation::Pickled => match (weights.size_bytes, weights.expected_bytes) {
            (Some(there), Some(wanted)) => {
                // the loader hands the blob's size over as it is; a section may be followed by padding
                let is_whole = if location == WeightsLocation::Blob { there == wanted } else { there >= wanted };
                let outcome = if is_whole { Outcome::Pass } else { Outcome::Fail };
                let message = if is_whole {
                    format!("{there} bytes of weights are in {place}, as the constants table wants")
                } else {
                    format!("{there} bytes of weights are in {place}, the constants table wants {wanted}")
                };
                let finding = Finding::new("weights-truncated", outcome, path, message).sides(wanted, there);
                judgement.push(if is_whole { finding } else { finding.fix("copy the file again, or package again") });
            }
            _ => {
                let message = format!("whether all weights are in {place}: {}", subject.why_unknown("weights"));
                let finding = Finding::new("weights-truncated", Outcome::Unknown, path, message);
                judgement.push(finding.level(Level::Warn));
            }
        },
        _ => {}
    }
}

/// The readers give the blob's size, 0 when there is none.
fn is_without_blob(subject: &Subject) -> bool {
    let weights = &subject.model.weights;
    weights.member.is_none() || (weights.size_bytes == Some(0) && weights.expected_bytes != Some(0))
}

fn check_offset(subject: &Subject, judgement: &mut Judgement) {
    let weights = &subject.model.weights;
    if weights.location != Some(WeightsLocation::Appended) {
        return;
    }
    let path = subject.path("weights.offset");
    let Some(offset) = weights.offset else {
        judgement.push(subject.unknown("weights-offset", "weights.offset", "where the appended weights begin"));
        return;
    };
    let finding = |outcome, message: String| Finding::new("weights-offset", outcome, &path, message);
    if !offset.is_multiple_of(APPENDED_ALIGNMENT) {
        let message = format!("appended weights begin at {offset}, no multiple of 16384: the runtime refuses them");
        judgement.push(
            finding(Outcome::Fail, message).fix("restore the file as it was compiled: something was appended or cut"),
        );
        return;
    }
    let page = subject.config.page_size_bytes;
    judgement.push(match page {
        Some(page) if page > 0 && !offset.is_multiple_of(page) => finding(
            Outcome::Fail,
            format!("appended weights begin at {offset}, no multiple of the page size {page}: mmap fails"),
        )
        .sides(page, offset)
        .fix("compile on a host with that page size, or without appended weights"),
        None if !offset.is_multiple_of(LARGE_PAGE) => finding(
            Outcome::Warn,
            format!(
                "appended weights begin at {offset}: hosts with 64 KiB pages (some aarch64 kernels) cannot map them"
            ),
        )
        .fix("compile on such a host if the model must run there; --page-size judges one"),
        _ => finding(Outcome::Pass, format!("appended weights begin at {offset}, a multiple of the page size")),
    });
}

fn check_alignment(subject: &Subject, judgement: &mut Judgement) {
    let is_cpu =
        |c: &&Constant| c.device.as_ref().or(subject.model.device.as_ref()).is_some_and(|d| d.kind == DeviceKind::Cpu);
    let placed: Vec<u64> = stored(subject).filter(is_cpu).filter_map(|c| c.file_offset).collect();
    let odd = placed.iter().filter(|offset| !offset.is_multiple_of(CONSTANT_ALIGNMENT)).count();
    if odd > 0 {
        let message = format!("{odd} of {} constants are not aligned to 64 bytes in the file", placed.len());
        judgement.push(
            Finding::new("constant-unaligned", Outcome::Warn, subject.path("constants"), message)
                .fix("compile again with torch 2.4 or newer"),
        );
    } else if !placed.is_empty() {
        let message = format!("all {} constants are aligned to 64 bytes", placed.len());
        judgement.push(Finding::new("constant-unaligned", Outcome::Pass, subject.path("constants"), message));
    }
    let is_gpu = subject.model.device.as_ref().is_some_and(|d| d.kind != DeviceKind::Cpu);
    let aligned: Vec<usize> = subject
        .model
        .inputs
        .iter()
        .flatten()
        .filter(|i| i.alignment_bytes.is_some_and(|a| a > 1))
        .map(|i| i.index)
        .collect();
    if !is_gpu || aligned.is_empty() {
        return;
    }
    let compiled = &subject.model.compiled_by;
    let throws = Release::new(2, 6);
    let is_old = compiled.torch_max.is_some_and(|max| max <= throws);
    let may_be_old = compiled.torch_min.is_none_or(|min| min <= throws);
    let count = aligned.len();
    let (outcome, message) = if is_old {
        (
            Outcome::Warn,
            format!("{count} inputs must begin at a multiple of 16 bytes: this release (2.6) refuses others"),
        )
    } else if may_be_old {
        (
            Outcome::Warn,
            format!(
                "{count} inputs were compiled as aligned to 16 bytes: 2.6 refuses others, newer releases copy them"
            ),
        )
    } else {
        (
            Outcome::Pass,
            format!("{count} inputs were compiled as aligned to 16 bytes; this release copies others at each run"),
        )
    };
    judgement.push(Finding::new("input-alignment", outcome, subject.path("inputs"), message));
}

#[cfg(test)]
mod tests {
    use super::super::sample::{cpu, outcome, with_kernel_files};
    use super::*;
    use crate::report::Outcome::{Fail, Pass, Unknown, Warn};
    use crate::target::LoadConfig;

    fn at(location: WeightsLocation, there: Option<u64>, wanted: Option<u64>) -> crate::model::Artifact {
        let mut artifact = cpu();
        let weights = &mut artifact.models[0].weights;
        (weights.location, weights.size_bytes, weights.expected_bytes) = (Some(location), there, wanted);
        artifact
    }

    #[test]
    fn bytes_that_are_missing_fail() {
        let config = LoadConfig::default();
        let code = "weights-truncated";
        assert_eq!(outcome(check, &at(WeightsLocation::Library, Some(1280), Some(1280)), &config, code), [Pass]);
        assert_eq!(outcome(check, &at(WeightsLocation::Library, Some(1279), Some(1280)), &config, code), [Fail]);
        assert_eq!(outcome(check, &at(WeightsLocation::Blob, Some(1281), Some(1280)), &config, code), [Fail]);
        assert_eq!(outcome(check, &at(WeightsLocation::Appended, None, Some(1280)), &config, code), [Unknown]);
        let mut blob = at(WeightsLocation::Blob, None, Some(1280));
        blob.models[0].weights.member = None;
        assert_eq!(outcome(check, &blob, &config, "weights-blob-missing"), [Fail]);
        let mut library = at(WeightsLocation::Blob, Some(0), Some(1280));
        library.kind = Kind::Library;
        assert_eq!(outcome(check, &library, &config, "weights-blob-missing"), [Warn], "the caller may have it");
        assert_eq!(outcome(check, &at(WeightsLocation::Absent, None, None), &config, "weights-absent"), [Warn]);
    }

    #[test]
    fn appended_weights_must_lie_on_a_page() {
        let mut artifact = at(WeightsLocation::Appended, Some(768), Some(768));
        let code = "weights-offset";
        let page = |bytes| LoadConfig { page_size_bytes: bytes, ..LoadConfig::default() };
        // 99 * 16384, as in the package of 2.15 with appended weights
        artifact.models[0].weights.offset = Some(1_622_016);
        assert_eq!(outcome(check, &artifact, &page(None), code), [Warn]);
        assert_eq!(outcome(check, &artifact, &page(Some(4096)), code), [Pass]);
        assert_eq!(outcome(check, &artifact, &page(Some(65_536)), code), [Fail]);
        artifact.models[0].weights.offset = Some(1_622_017);
        assert_eq!(outcome(check, &artifact, &page(Some(4096)), code), [Fail]);
    }

    #[test]
    fn alignment_of_constants_and_inputs_is_said() {
        let config = LoadConfig::default();
        let mut artifact = cpu();
        for (constant, offset) in artifact.models[0].constants.iter_mut().flatten().zip([64, 704]) {
            constant.file_offset = Some(offset);
        }
        assert_eq!(outcome(check, &artifact, &config, "constant-unaligned"), [Pass]);
        artifact.models[0].constants.as_mut().expect("constants")[1].file_offset = Some(700);
        assert_eq!(outcome(check, &artifact, &config, "constant-unaligned"), [Warn]);
        let mut gpu = with_kernel_files(&[]);
        let input = crate::model::TensorSpec { alignment_bytes: Some(16), ..Default::default() };
        gpu.models[0].inputs = Some(vec![input]);
        assert_eq!(outcome(check, &gpu, &config, "input-alignment"), [Pass]);
        gpu.models[0].compiled_by.torch_min = Some(Release::new(2, 6));
        gpu.models[0].compiled_by.torch_max = Some(Release::new(2, 6));
        assert_eq!(outcome(check, &gpu, &config, "input-alignment"), [Warn]);
    }
}
