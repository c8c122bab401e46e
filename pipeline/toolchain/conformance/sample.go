package conformance

import (
	"embed"
	"os"
	"path/filepath"
)

// The sample is a model of three layers with small whole weights, so that half precision computes it well, and another with other
// weights. sample/make.py makes it.
//
//go:embed sample/model.onnx sample/other.onnx sample/cases.safetensors sample/want.safetensors
var sample embed.FS

// sampleCases is how many cases the sample has.
const sampleCases = 8

// UseSample writes two small models and their cases to the scratch folder and makes them the subject's.
func (s *Subject) UseSample() error {
	for name, path := range map[string]*string{"model.onnx": &s.Model, "other.onnx": &s.Other, "cases.safetensors": &s.Cases, "want.safetensors": &s.Want} {
		data, err := sample.ReadFile("sample/" + name)
		if err != nil {
			return err
		}
		*path = filepath.Join(s.Scratch, name)
		if err := os.WriteFile(*path, data, 0o600); err != nil {
			return err
		}
	}
	s.Count = sampleCases
	return nil
}
