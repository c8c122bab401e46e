package oci

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// packConfig is the part of the config of a CNCF ModelPack manifest that this package fills in.
// Its schema allows no additional fields. Source: modelpack/model-spec, docs/config.md and
// schema/config-schema.json.
type packConfig struct {
	Descriptor packDescriptor `json:"descriptor"`
	Config     packModel      `json:"config"`
	ModelFS    packFS         `json:"modelfs"`
}

type packDescriptor struct {
	Name string `json:"name"`
}

type packModel struct {
	Format    string `json:"format,omitempty"`
	Precision string `json:"precision,omitempty"`
}

type packFS struct {
	Type    string            `json:"type"`
	DiffIDs []registry.Digest `json:"diffIds"` // of the layers before compression, so of the files
}

// newPackConfig describes a model of the files, which are in the order of the layers.
func newPackConfig(p storage.Part, files []storage.PartFile) packConfig {
	config := packConfig{
		Descriptor: packDescriptor{Name: p.Model},
		Config:     packModel{Format: p.Format, Precision: packPrecision(p.Engine.Precision)},
		ModelFS:    packFS{Type: "layers"},
	}
	for _, f := range files {
		config.ModelFS.DiffIDs = append(config.ModelFS.DiffIDs, f.Digest)
	}
	return config
}

// packPrecision returns ModelPack's name of a precision, or "" if it has none, as for int4.
func packPrecision(precision string) string {
	precision, _ = artifact.NumberFormat(precision)
	return map[string]string{
		"fp64": "float64",
		"fp32": "float32",
		"fp16": "float16",
		"bf16": "bfloat16",
		"int8": "int8",
	}[precision]
}

// layerType is the media type of a model's file.
func layerType(kind artifact.FileKind) (string, bool) {
	t, ok := map[artifact.FileKind]string{
		artifact.FileEngine: typeWeight,
		artifact.FileAsset:  typeAsset,
		artifact.FileCode:   typeCode,
	}[kind]
	return t, ok
}

// layerKind returns the kind of a model's file by its media type.
func layerKind(mediaType string) (artifact.FileKind, bool) {
	kind, ok := map[string]artifact.FileKind{
		typeWeight: artifact.FileEngine,
		typeAsset:  artifact.FileAsset,
		typeCode:   artifact.FileCode,
	}[mediaType]
	return kind, ok
}
