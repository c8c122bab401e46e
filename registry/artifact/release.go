package artifact

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// Release is one version of a model, read from an OCI image index and checked.
type Release struct {
	Digest    registry.Digest `json:"digest"`
	Size      int64           `json:"size"` // bytes of the index document
	Model     string          `json:"model"`
	Version   string          `json:"version"`
	Revision  int             `json:"revision"` // 1 for the first
	Sources   registry.Digest `json:"sources"`  // of the sources index, in SourcesRepository
	Plan      registry.Digest `json:"plan"`
	Limits    registry.Digest `json:"limits"`    // of the limits manifest
	Interface registry.Digest `json:"interface"` // of the interface manifest
	Engines   []Engine        `json:"engines"`   // in canonical order
	// Order has the digests of the engines in the order in which nodes get them. See [OrderEngines].
	Order []registry.Digest `json:"order"`
	// Part is set if the index has only some engines of a release, which several machines build: what
	// the parts of one release have in common. A part is never published and never promoted.
	Part registry.Digest `json:"part,omitempty"`
}

// CheckWhole refuses a part of a release. Errors: CodeInvalid.
func (r Release) CheckWhole() error {
	if r.Part == "" {
		return nil
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid,
		"%s %s: %s is a part of a release: it has only the engines that one machine built", r.Model, r.Version, r.Digest),
		"mlpromote assemble makes the release when all parts are there")
}

// Engine is one OCI manifest of a release: the files that a runtime loads, for one target,
// built by one toolchain in one precision.
type Engine struct {
	Digest     registry.Digest `json:"digest"`
	Size       int64           `json:"size"`  // bytes of the manifest document
	Bytes      int64           `json:"bytes"` // bytes of all files; 0 if only the index was read
	Target     Target          `json:"target"`
	Toolchain  Toolchain       `json:"toolchain"`
	Variant    string          `json:"variant"`   // "int8", as the spec names it
	Precision  string          `json:"precision"` // "int8", the number format
	NativeCode bool            `json:"nativeCode,omitempty"`
	// Providers are the ONNX Runtime execution providers that the engine is for, preferred
	// first.
	Providers []Provider `json:"providers,omitempty"`
	// Operators are the operator libraries that the engine carries: native code.
	Operators []Operators `json:"operators,omitempty"`
	// Load says how nodes load the engine; nil for the runtime's own defaults. It is also in the
	// engine's file [LoadProfileFile].
	Load      *LoadProfile    `json:"load,omitempty"`
	Reference registry.Digest `json:"reference"`
	Sources   registry.Digest `json:"sources"`
	Limits    registry.Digest `json:"limits"`
	Interface registry.Digest `json:"interface"`
	// Image is the image form of the engine. It is known only of an engine that was read with its release, and is zero
	// in releases of versions that made none.
	Image Image `json:"image,omitzero"`
}

// Image is the image form of an engine: the manifest of an OCI image with the same files, for container runtimes.
type Image struct {
	Digest registry.Digest `json:"digest"`
	Size   int64           `json:"size"` // bytes of the manifest document
}

// Operators is a library of operators among the files of an engine.
type Operators struct {
	Path   string          `json:"path"` // as in File
	Digest registry.Digest `json:"digest"`
}

// Toolchain identifies the software that built an engine.
type Toolchain struct {
	Name    string          `json:"name"`              // "onnxruntime"
	Version string          `json:"version"`           // exact
	Lock    registry.Digest `json:"lock,omitempty"`    // of the lock file of the install
	Options registry.Digest `json:"options,omitempty"` // of the canonical options of every step
}

// Label identifies an engine within its release: "linux-amd64-v3/int8".
func (e Engine) Label() string { return e.Target.Name + "/" + e.Variant }

// Tag returns the release's tag: its version, plus "-r<N>" from the second revision on.
func (r Release) Tag() string {
	if r.Revision > 1 {
		return fmt.Sprintf("%s-r%d", r.Version, r.Revision)
	}
	return r.Version
}

// ReleaseType is the artifactType of a release's index.
const ReleaseType = "application/vnd.mlpromote.release.v1+json"

// HeadTag is the tag that mirrors an environment's head.
const HeadTag = "current"

// Tags returns the tags of the release in a repository: its own, one for each engine (with the
// toolchain if two would share it), and the mirror of the head.
func (r Release) Tags() map[string]registry.Digest {
	tags := map[string]registry.Digest{HeadTag: r.Digest, r.Tag(): r.Digest}
	shared := make(map[string]int)
	for _, e := range r.Engines {
		shared[e.Label()]++
	}
	for _, e := range r.Engines {
		tag := r.Tag() + "." + e.Target.Name + "." + e.Variant
		if shared[e.Label()] > 1 {
			tag += "." + e.Toolchain.Name + "-" + e.Toolchain.Version
		}
		tags[tag] = e.Digest
	}
	return tags
}

// Engine finds an engine of the release by digest.
func (r Release) Engine(d registry.Digest) (Engine, bool) {
	for _, e := range r.Engines {
		if e.Digest == d {
			return e, true
		}
	}
	return Engine{}, false
}

// MaxSubjects is how many subjects a statement of in-toto may have for cosign. A summary names all of a release.
const MaxSubjects = 1024

// MaxEngines is how many engines a new release may have: a summary names it, each engine and each image form.
const MaxEngines = (MaxSubjects - 1) / 2

// CheckEngines refuses to make a release of more than [MaxEngines] engines. Errors: CodeInvalid.
func CheckEngines(n int) error {
	if n <= MaxEngines {
		return nil
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid,
		"the release would have %d engines: want at most %d, since the summary of its promotion names the release, every engine and every image form, and a statement has at most %d subjects",
		n, MaxEngines, MaxSubjects), "divide targets or variants among several models")
}

// Subjects lists the digests that evidence for the release can be about: the release, its engines, and then the image
// forms of the engines.
func (r Release) Subjects() []Subject {
	subjects := r.Judged()
	for _, e := range r.Engines {
		if e.Image.Digest != "" {
			subjects = append(subjects, e.imageSubject())
		}
	}
	return subjects
}

func (e Engine) imageSubject() Subject {
	return Subject{Name: e.Label() + " (image)", Digest: e.Image.Digest, Size: e.Image.Size, Engine: e.Digest}
}

// Judged lists the release and its engines, which policies judge. The image form of an engine is judged with it.
func (r Release) Judged() []Subject {
	subjects := []Subject{{Name: "release", Digest: r.Digest, Size: r.Size, Index: true}}
	for _, e := range r.Engines {
		subjects = append(subjects, Subject{Name: e.Label(), Digest: e.Digest, Size: e.Size})
	}
	return subjects
}

// Subject finds a subject of the release by digest.
func (r Release) Subject(d registry.Digest) (Subject, bool) {
	if d == r.Digest {
		return r.Judged()[0], true
	}
	for _, e := range r.Engines {
		switch d {
		case e.Digest:
			return Subject{Name: e.Label(), Digest: d, Size: e.Size}, true
		case e.Image.Digest:
			return e.imageSubject(), d != ""
		}
	}
	return Subject{}, false
}

// Subject is a manifest or index that evidence is attached to.
type Subject struct {
	Name   string // for people and for statements: "release", "linux-amd64-v3/int8", "linux-amd64-v3/int8 (image)"
	Digest registry.Digest
	Size   int64
	Index  bool            // an image index rather than a manifest
	Engine registry.Digest // of an image form: its engine
}

// PartKind is the kind of a part in its release or sources: the dev.mlpromote.role annotation.
type PartKind string

// The roles of parts. A release index has the first four; a sources index has the others.
const (
	PartEngine      PartKind = "engine"
	PartImage       PartKind = "image" // the image form of an engine
	PartLimits      PartKind = "limits"
	PartInterface   PartKind = "interface"
	PartReference   PartKind = "reference"
	PartCases       PartKind = "cases"
	PartGolden      PartKind = "golden"
	PartCalibration PartKind = "calibration"
	PartTuning      PartKind = "tuning"
	PartProgram     PartKind = "program"
)

// FileKind says how the runtime uses a file of an engine.
type FileKind string

// The kinds of files. The zero kind is FileEngine.
const (
	FileEngine FileKind = ""      // loaded by the runtime
	FileAsset  FileKind = "asset" // tokenizer, labels
	FileCode   FileKind = "code"  // operator library
)

// File is one file of a part.
type File struct {
	Path   string // relative, with '/', never outside its folder
	Digest registry.Digest
	Size   int64 // bytes
	Kind   FileKind
}

// CaseSet describes the tensors of a cases, golden or calibration part.
type CaseSet struct {
	Count   int    `json:"count"`            // cases in all shards
	Origin  string `json:"origin,omitempty"` // "recorded" or "generated"
	Labels  string `json:"labels,omitempty"` // name of the tensor with labels
	Kind    string `json:"kind,omitempty"`   // golden: the runtime that computed it, "onnxruntime/disable_all"
	Runtime string `json:"runtime,omitempty"`
	Node    *Node  `json:"node,omitempty"`
	// Conversion is, of golden outputs, what the types of engines change; nil where the cases have these types.
	Conversion *Conversion `json:"conversion,omitempty"`
	Shards     []Shard     `json:"shards"`
}

// Conversion says what it changes that engines take other types than the cases have, such as float32 for float64.
type Conversion struct {
	Cases   int `json:"cases"`   // whose values change
	Answers int `json:"answers"` // of them, those that the framework of the source answers otherwise with the changed values
}

// Shard is one file of a CaseSet with its number of cases.
type Shard struct {
	File  string `json:"file"`
	First int    `json:"first"`
	Count int    `json:"count"`
}

// Origins of cases.
const (
	OriginRecorded  = "recorded"
	OriginGenerated = "generated"
)
