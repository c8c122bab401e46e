package oci

import (
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
)

// Media types and artifact types of format 1.
const (
	typeRelease     = artifact.ReleaseType
	typeSources     = "application/vnd.mlpromote.sources.v1+json"
	typeLimits      = "application/vnd.mlpromote.limits.v1+json"
	typeInterface   = "application/vnd.mlpromote.interface.v1+json"
	typeCases       = "application/vnd.mlpromote.cases.v1+json"
	typeGolden      = "application/vnd.mlpromote.golden.v1+json"
	typeCalibration = "application/vnd.mlpromote.calibration.v1+json"
	typeTuning      = "application/vnd.mlpromote.tuning.v1+json"
	typeProgram     = "application/vnd.mlpromote.program.v1+json"

	// CNCF ModelPack, docs/spec.md.
	typeModel       = "application/vnd.cncf.model.manifest.v1+json"
	typeModelConfig = "application/vnd.cncf.model.config.v1+json"
	typeWeight      = "application/vnd.cncf.model.weight.v1.raw"
	typeAsset       = "application/vnd.cncf.model.weight.config.v1.raw"
	typeCode        = "application/vnd.cncf.model.code.v1.raw"

	// typeFigures is that of per-case figures, which are the config of the evidence that names them.
	typeFigures = "application/vnd.mlpromote.figures.v1+safetensors"

	typeSafetensors = "application/vnd.safetensors"
	typeRaw         = "application/octet-stream"

	// cosign, specs/BUNDLE_SPEC.md.
	typeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// bundleFamily is the common prefix of the media types of all bundle versions.
	bundleFamily = "application/vnd.dev.sigstore.bundle"
)

// Annotations of format 1.
const (
	prefix           = "dev.mlpromote."
	keyFormat        = prefix + "format"
	keyRole          = prefix + "role"
	keyModel         = prefix + "model"
	keyVersion       = prefix + "version"
	keyRevision      = prefix + "revision"
	keyPlan          = prefix + "plan"
	keyPart          = prefix + "part"
	keyOrder         = prefix + "order"
	keyTarget        = prefix + "target"
	keyToolchain     = prefix + "toolchain"
	keyVariant       = prefix + "variant"
	keyPrecision     = prefix + "precision"
	keyProviders     = prefix + "providers"
	keyLoadProfile   = prefix + "load-profile"
	keyNativeCode    = prefix + "native-code"
	keyReference     = prefix + "reference"
	keySources       = prefix + "sources"
	keyLimits        = prefix + "limits"
	keyInterface     = prefix + "interface"
	keyFilepath      = "org.cncf.model.filepath" // ModelPack
	keyBundleContent = "dev.sigstore.bundle.content"
	keyPredicateType = "dev.sigstore.bundle.predicateType"

	format        = "1"
	bundleContent = "dsse-envelope"
)

// Limits on what is read.
const (
	maxDocument    = 4 << 20                  // bytes of a manifest, index, config or bundle
	maxDepth       = 32                       // nesting of a JSON document
	maxEntries     = artifact.MaxSubjects + 1 // engines and image forms, limits and interface
	maxLayers      = 4096
	maxAnnotations = 128
	maxFile        = 1 << 50 // bytes of a file; the sum over a part stays far inside an int64
	maxPath        = 512     // bytes of a file's path
)

// shape describes the manifest of a kind of part.
type shape struct {
	artifactType string
	config       string // media type; empty for the OCI empty descriptor
	layer        string // media type of every layer; empty where a file's kind decides
	index        string // artifact type of the index that the part stands in
	single       bool   // exactly one file
	image        bool   // of an image that container runtimes load
}

// shapeOf returns the shape of a kind of part in format 1.
func shapeOf(role artifact.PartKind) (shape, bool) {
	s, ok := map[artifact.PartKind]shape{
		artifact.PartEngine:      {artifactType: typeModel, config: typeModelConfig, index: typeRelease},
		artifact.PartImage:       {config: imageform.TypeConfig, layer: imageform.TypeLayer, index: typeRelease, single: true, image: true},
		artifact.PartLimits:      {artifactType: typeLimits, layer: typeLimits, index: typeRelease, single: true},
		artifact.PartInterface:   {artifactType: typeInterface, layer: typeInterface, index: typeRelease, single: true},
		artifact.PartReference:   {artifactType: typeModel, config: typeModelConfig, index: typeSources},
		artifact.PartCases:       {artifactType: typeCases, config: typeCases, layer: typeSafetensors, index: typeSources},
		artifact.PartGolden:      {artifactType: typeGolden, config: typeGolden, layer: typeSafetensors, index: typeSources},
		artifact.PartCalibration: {artifactType: typeCalibration, config: typeCalibration, layer: typeSafetensors, index: typeSources},
		artifact.PartTuning:      {artifactType: typeTuning, layer: typeRaw, index: typeSources},
		artifact.PartProgram:     {artifactType: typeProgram, layer: typeRaw, index: typeSources, single: true},
	}[role]
	return s, ok
}

// model reports whether the shape is a ModelPack manifest.
func (s shape) model() bool { return s.artifactType == typeModel }

// set reports whether the shape's config is a artifact.CaseSet.
func (s shape) set() bool { return s.config != "" && !s.model() && !s.image }

// Media types of manifests that registries know beside OCI's.
const (
	typeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	typeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)
