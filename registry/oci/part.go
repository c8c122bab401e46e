package oci

import (
	"io/fs"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/storage"
)

// part is a manifest of this format, read and checked.
type part struct {
	desc     ocispec.Descriptor // media type, digest, size and artifact type
	raw      []byte
	manifest ocispec.Manifest
	role     artifact.PartKind
	shape    shape
	files    []artifact.File
	engine   artifact.Engine // of an engine or a reference model
	imageOf  registry.Digest // of an image: its engine
}

// label describes a part in messages: "engine linux-amd64-v3/int8", "limits".
func (p part) label() string {
	switch p.role {
	case artifact.PartEngine:
		return "engine " + p.engine.Label()
	case artifact.PartImage:
		return "image of engine " + string(p.imageOf)
	}
	return string(p.role)
}

// layer describes the content of a file in messages.
func (p part) layer(i int) string { return "file " + p.files[i].Path + " of " + p.label() }

// ref returns the part as an entry of an index.
func (p part) ref() storage.PartRef {
	return storage.PartRef{Role: p.role, Digest: p.desc.Digest, Size: p.desc.Size}
}

// checkShape checks that the manifest has the shape of its kind.
func (p part) checkShape() error {
	config := p.shape.config
	if config == "" {
		config = ocispec.MediaTypeEmptyJSON
	}
	if err := checkKind(p.manifest.ArtifactType, p.shape.artifactType, p.manifest.Annotations); err != nil {
		return err
	}
	switch {
	case p.manifest.Config.MediaType != config:
		return registry.Errorf(registry.CodeInvalid, "its config is a %q: want %s", p.manifest.Config.MediaType, config)
	case len(p.manifest.Layers) == 0:
		return registry.Errorf(registry.CodeInvalid, "it has no files")
	case p.shape.single && len(p.manifest.Layers) != 1:
		return registry.Errorf(registry.CodeInvalid, "it has %d files: want one", len(p.manifest.Layers))
	case p.manifest.Subject != nil:
		return registry.Errorf(registry.CodeInvalid, "it has the subject %s, but a part must not have one", p.manifest.Subject.Digest)
	}
	return nil
}

// finishEngine sets the fields that come from the manifest itself.
func (p *part) finishEngine() error {
	p.engine.Digest, p.engine.Size = p.desc.Digest, p.desc.Size
	for _, f := range p.files {
		p.engine.Bytes += f.Size
		if f.Kind != artifact.FileCode {
			continue
		}
		p.engine.Operators = append(p.engine.Operators, artifact.Operators{Path: f.Path, Digest: f.Digest})
		if p.role == artifact.PartEngine && !p.engine.NativeCode {
			return registry.Errorf(registry.CodeTrust,
				"%s carries the operator library %s without declaring it: want the annotation %s", p.label(), f.Path, keyNativeCode)
		}
	}
	return nil
}

// finishImage sets the fields of an image. Whether its layer is that of the engine, [imageform.Check] finds out.
func (p *part) finishImage() error {
	p.imageOf = registry.Digest(p.manifest.Annotations[imageform.KeyEngine])
	if err := p.imageOf.Validate(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: digest %q: %w", imageform.KeyEngine, p.imageOf, err)
	}
	layer := p.manifest.Layers[0]
	if layer.MediaType != p.shape.layer {
		return registry.Errorf(registry.CodeInvalid, "its layer is a %q: want %s", layer.MediaType, p.shape.layer)
	}
	p.files = []artifact.File{{Path: layerFile, Digest: layer.Digest, Size: layer.Size}}
	return nil
}

// layerFile names the layer of an image among the files of a part. Its descriptor has no title: an image is for container
// runtimes, and "oras pull" writes none of it.
const layerFile = "layer.tar"

// readFiles returns the files that the layers describe.
func readFiles(layers []ocispec.Descriptor, s shape) ([]artifact.File, error) {
	files := make([]artifact.File, 0, len(layers))
	for _, layer := range layers {
		f := artifact.File{Path: layer.Annotations[ocispec.AnnotationTitle], Digest: layer.Digest, Size: layer.Size}
		known := layer.MediaType == s.layer
		if s.model() {
			f.Kind, known = layerKind(layer.MediaType)
		}
		if !known {
			return nil, registry.Errorf(registry.CodeInvalid, "file %q is a %q, which has no place in it", f.Path, layer.MediaType)
		}
		if other, ok := layer.Annotations[keyFilepath]; (ok || s.model()) && other != f.Path {
			return nil, registry.Errorf(registry.CodeTrust,
				"a file has two names: %s is %q and %s is %q", ocispec.AnnotationTitle, f.Path, keyFilepath, other)
		}
		files = append(files, f)
	}
	return files, checkPaths(files)
}

// checkPaths refuses files that could not be written into one folder together. Errors:
// CodeTrust.
func checkPaths(files []artifact.File) error {
	taken := make(map[string]bool, len(files))
	for _, f := range files {
		if !localPath(f.Path) {
			return registry.Errorf(registry.CodeTrust,
				"file name %q: want a relative path with '/' that stays in its folder, at most %d bytes", f.Path, maxPath)
		}
		if taken[f.Path] {
			return registry.Errorf(registry.CodeTrust, "two files are named %q", f.Path)
		}
		taken[f.Path] = true
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if taken[dir] {
				return registry.Errorf(registry.CodeTrust, "%q is a file, and the folder of %q", dir, f.Path)
			}
		}
	}
	return nil
}

// localPath reports whether a name is a path inside a folder on every operating system.
func localPath(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= maxPath &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == ':' })
}
