package oci

import (
	"cmp"
	"encoding/json"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// engineAnnotations returns the annotations of an engine or a reference model. It omits empty
// fields; a reference model has few.
func engineAnnotations(e artifact.Engine) (map[string]string, error) {
	out := make(map[string]string)
	if e.Target.V != 0 {
		target, err := registry.CanonicalJSON(e.Target)
		if err != nil {
			return nil, err
		}
		out[keyTarget] = string(target)
	}
	if e.Toolchain != (artifact.Toolchain{}) {
		made, err := registry.CanonicalJSON(e.Toolchain)
		if err != nil {
			return nil, err
		}
		out[keyToolchain] = string(made)
	}
	if e.NativeCode {
		out[keyNativeCode] = "true"
	}
	if len(e.Providers) > 0 {
		providers, err := registry.CanonicalJSON(e.Providers)
		if err != nil {
			return nil, err
		}
		out[keyProviders] = string(providers)
	}
	if e.Load != nil {
		document, err := e.Load.Document()
		if err != nil {
			return nil, err
		}
		out[keyLoadProfile] = string(document)
	}
	set(out, keyVariant, e.Variant)
	set(out, keyPrecision, e.Precision)
	for _, d := range digestsOf(&e) {
		set(out, d.key, string(*d.value))
	}
	return out, nil
}

func set(annotations map[string]string, key, value string) {
	if value != "" {
		annotations[key] = value
	}
}

// keyedDigest is a digest field of an engine with its annotation.
type keyedDigest struct {
	key   string
	value *registry.Digest
}

func digestsOf(e *artifact.Engine) []keyedDigest {
	return []keyedDigest{{keyReference, &e.Reference}, {keySources, &e.Sources}, {keyLimits, &e.Limits}, {keyInterface, &e.Interface}}
}

// readEngine reads the annotations that engineAnnotations writes. An engine must have all
// required ones; in a reference model, those that exist must be valid. Errors: CodeInvalid.
func readEngine(role artifact.PartKind, annotations map[string]string) (artifact.Engine, error) {
	e := artifact.Engine{Variant: annotations[keyVariant], Precision: annotations[keyPrecision]}
	if role == artifact.PartEngine {
		for _, key := range []string{keyTarget, keyToolchain, keyVariant, keyPrecision, keyReference, keySources, keyLimits, keyInterface} {
			if annotations[key] == "" {
				return e, registry.Errorf(registry.CodeInvalid, "the engine has no annotation %s", key)
			}
		}
	}
	if err := readTarget(annotations, &e); err != nil {
		return e, err
	}
	if err := readToolchain(annotations, &e); err != nil {
		return e, err
	}
	if err := readProviders(annotations, &e); err != nil {
		return e, err
	}
	if err := readLoadProfile(annotations, &e); err != nil {
		return e, err
	}
	for _, d := range digestsOf(&e) {
		*d.value = registry.Digest(annotations[d.key])
		if err := d.value.Validate(); *d.value != "" && err != nil {
			return e, registry.Errorf(registry.CodeInvalid, "annotation %s: digest %q: %w", d.key, *d.value, err)
		}
	}
	switch native := annotations[keyNativeCode]; native {
	case "", "true":
		e.NativeCode = native != ""
	default:
		return e, registry.Errorf(registry.CodeInvalid, "annotation %s is %q: want \"true\" or no such annotation", keyNativeCode, native)
	}
	return e, nil
}

func readTarget(annotations map[string]string, e *artifact.Engine) error {
	value, ok := annotations[keyTarget]
	if !ok {
		return nil
	}
	if err := checkJSON([]byte(value)); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: %w", keyTarget, err)
	}
	target, err := artifact.ParseTarget([]byte(value))
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: %w", keyTarget, err)
	}
	e.Target = target
	return nil
}

func readToolchain(annotations map[string]string, e *artifact.Engine) error {
	value, ok := annotations[keyToolchain]
	if !ok {
		return nil
	}
	if err := decode([]byte(value), &e.Toolchain); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: %w", keyToolchain, err)
	}
	if e.Toolchain.Name == "" || e.Toolchain.Version == "" {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: want a name and a version", keyToolchain)
	}
	return nil
}

// readProviders reads the declared execution providers: a list of at least one.
func readProviders(annotations map[string]string, e *artifact.Engine) error {
	value, ok := annotations[keyProviders]
	if !ok {
		return nil
	}
	if err := checkJSON([]byte(value)); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: %w", keyProviders, err)
	}
	if err := json.Unmarshal([]byte(value), &e.Providers); err != nil || len(e.Providers) == 0 {
		return registry.Errorf(registry.CodeInvalid, "annotation %s is %q: want a list of names", keyProviders, value)
	}
	return nil
}

// canonicalOrder compares entries for their order in an index, so that two assemblers of the
// same parts write the same bytes.
func canonicalOrder(a, b part) int {
	return cmp.Or(
		cmp.Compare(a.role, b.role),
		cmp.Compare(a.engine.Target.Name, b.engine.Target.Name),
		cmp.Compare(a.engine.Precision, b.engine.Precision),
		cmp.Compare(a.engine.Variant, b.engine.Variant),
		cmp.Compare(a.desc.Digest, b.desc.Digest),
	)
}
