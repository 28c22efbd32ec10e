//! Artefacts for the tests of the checks: small, with real kernel files where kernels matter.

use super::{Judgement, Subject};
use crate::kernel;
use crate::model::{
    Archive, Artifact, CompiledBy, Constant, ConstantKind, DType, Device, DeviceKind, Kernel, KernelKind, Kind, Member,
    MetadataEntry, Model, Release, Requires, Role, Weights, WeightsLocation,
};
use crate::report::{Finding, Outcome};
use crate::source::Region;
use crate::target::LoadConfig;
use std::path::Path;

/// A CPU model as a package of torch 2.9 would show it.
pub fn cpu() -> Artifact {
    let folder = "m/data/aotinductor/model/";
    let member = |name: &str, role| Member {
        name: format!("{folder}{name}"),
        role,
        size_bytes: 1000,
        stored_bytes: None,
        unreadable: None,
        hazards: Vec::new(),
    };
    let metadata = |copy: &str| MetadataEntry {
        key: "AOTI_DEVICE_KEY".into(),
        value: "cpu".into(),
        member: Some(format!("{folder}{copy}")),
    };
    let constant = |index: usize, fqn: &str, shape: &[i64]| Constant {
        index,
        name: Some(fqn.replace('.', "_")),
        fqn: Some(fqn.into()),
        dtype: DType::from_name("float32"),
        shape: Some(shape.to_vec()),
        stride: None,
        storage_offset: None,
        size_bytes: Some(640),
        kind: Some(ConstantKind::Parameter),
        folded: Some(false),
        device: Some(Device::new(DeviceKind::Cpu)),
        is_opaque: false,
        file_offset: None,
    };
    let model = Model {
        name: "model".into(),
        device: Some(Device::new(DeviceKind::Cpu)),
        device_evidence: Vec::new(),
        platform: None,
        compiled_by: CompiledBy {
            torch_min: Some(Release::new(2, 9)),
            torch_max: Some(Release::new(2, 9)),
            ..CompiledBy::default()
        },
        inputs: Some(Vec::new()),
        baked_in: Vec::new(),
        outputs: Some(Vec::new()),
        symbols: Vec::new(),
        relations: Vec::new(),
        constants: Some(vec![constant(0, "fc1.weight", &[16, 10]), constant(1, "fc2.weight", &[10, 16])]),
        weights: Weights {
            location: Some(WeightsLocation::Library),
            member: Some(format!("{folder}a.wrapper.so")),
            section: Some(".lrodata".into()),
            offset: Some(4096),
            size_bytes: Some(1280),
            expected_bytes: Some(1280),
            totals: Vec::new(),
            evidence: Vec::new(),
        },
        kernels: Vec::new(),
        unused_kernel_files: Vec::new(),
        operators: Vec::new(),
        trace: None,
        requires: Requires::default(),
        capabilities: Vec::new(),
        checks: None,
        metadata: vec![metadata("b.kernel_metadata.json"), metadata("a.wrapper_metadata.json")],
        library: Some(format!("{folder}a.wrapper.so")),
        conflicts: Vec::new(),
    };
    Artifact {
        path: "m.pt2".into(),
        kind: Kind::Package,
        size_bytes: 10_000,
        interface_id: None,
        sha256: None,
        archive: Some(Archive {
            root: "m".into(),
            version: Some("0".into()),
            members: vec![
                member("a.wrapper.cpp", Role::Wrapper),
                member("b.kernel.cpp", Role::KernelSource),
                member("a.wrapper_metadata.json", Role::Metadata),
                member("b.kernel_metadata.json", Role::Metadata),
                member("a.wrapper.so", Role::Library),
            ],
        }),
        models: vec![model],
        exported: None,
        error: None,
        unknown: Vec::new(),
        problems: Vec::new(),
    }
}

/// A real library of the test data, with its code scanned for instruction sets but not interpreted.
pub fn library(name: &str) -> Artifact {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(name);
    let settings =
        crate::Settings { code: crate::CodeReading::Never, scans_instructions: true, ..crate::Settings::default() };
    crate::inspect(&path, &settings).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A real kernel file of the test data, read.
fn cubin(name: &str) -> kernel::KernelFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/kernels").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    kernel::read(Region::whole(&bytes)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A CUDA model whose kernels come from real files.
pub fn with_kernel_files(names: &[&str]) -> Artifact {
    let mut artifact = cpu();
    let Some(model) = artifact.models.first_mut() else { return artifact };
    model.device = Some(Device::new(DeviceKind::Cuda));
    for constant in model.constants.iter_mut().flatten() {
        constant.device = Some(Device::new(DeviceKind::Cuda));
    }
    for entry in &mut model.metadata {
        entry.value = "cuda".into();
    }
    for (index, name) in names.iter().enumerate() {
        let file = cubin(name);
        let entry = file.images.iter().find_map(|i| i.entries.first()).map(|e| e.name.clone());
        let mut kernel = Kernel::new(format!("triton_{index}"), KernelKind::Triton);
        kernel.file = Some((*name).to_owned());
        kernel.symbol = entry;
        kernel.shared_bytes = Some(0);
        kernel::describe(&mut kernel, &file);
        model.kernels.push(kernel);
    }
    artifact
}

/// Findings of one check with one code, over all models.
pub fn find(check: fn(&Subject, &mut Judgement), artifact: &Artifact, config: &LoadConfig, code: &str) -> Vec<Finding> {
    let mut judgement = Judgement::default();
    for (index, model) in artifact.models.iter().enumerate() {
        check(&Subject { artifact, index, model, config }, &mut judgement);
    }
    let known = super::codes::find(code);
    assert!(known.is_some(), "{code} is not registered");
    judgement.findings.into_iter().filter(|f| f.code == code).collect()
}

/// Their outcomes.
pub fn outcome(
    check: fn(&Subject, &mut Judgement),
    artifact: &Artifact,
    config: &LoadConfig,
    code: &str,
) -> Vec<Outcome> {
    find(check, artifact, config, code).iter().map(|f| f.outcome).collect()
}
