package oci

import (
	"bytes"
	"io"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// withLoadProfile adds the file with the load profile to the files of an engine that has one, so
// that whoever pulls it with another program has the profile too.
func withLoadProfile(p storage.Part) ([]storage.PartFile, error) {
	if p.Engine.Load == nil {
		return p.Files, nil
	}
	document, err := p.Engine.Load.Document()
	if err != nil {
		return nil, err
	}
	return append(p.Files[:len(p.Files):len(p.Files)], storage.PartFile{
		File: artifact.File{Path: artifact.LoadProfileFile, Digest: digest.FromBytes(document), Size: int64(len(document)), Kind: artifact.FileAsset},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(document)), nil },
	}), nil
}

// readLoadProfile reads the annotation with the load profile, the same bytes as the file's.
func readLoadProfile(annotations map[string]string, e *artifact.Engine) error {
	value, ok := annotations[keyLoadProfile]
	if !ok {
		return nil
	}
	if err := checkJSON([]byte(value)); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: %w", keyLoadProfile, err)
	}
	profile, err := artifact.ParseLoadProfile([]byte(value))
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: %w", keyLoadProfile, err)
	}
	e.Load = &profile
	return nil
}

// checkLoadProfile checks that an engine has a load profile in its annotations and its files, or
// in neither, and that both are the same bytes: programs that read one of them load it alike.
// Errors: CodeTrust.
func (p part) checkLoadProfile() error {
	said, annotated := p.manifest.Annotations[keyLoadProfile]
	for _, f := range p.files {
		if f.Path != artifact.LoadProfileFile {
			continue
		}
		switch {
		case !annotated:
			return registry.Errorf(registry.CodeTrust, "%s has the file %s and no annotation %s: want both or neither", p.label(), f.Path, keyLoadProfile)
		case f.Digest != digest.FromString(said):
			return registry.Errorf(registry.CodeTrust, "%s: its file %s is %s, and its annotation %s is another load profile: want the same bytes",
				p.label(), f.Path, f.Digest, keyLoadProfile)
		}
		return nil
	}
	if annotated {
		return registry.Errorf(registry.CodeTrust,
			"%s has the annotation %s and no file %s: want both or neither", p.label(), keyLoadProfile, artifact.LoadProfileFile)
	}
	return nil
}
