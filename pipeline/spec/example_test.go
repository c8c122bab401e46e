package spec_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Reads a spec and prints what it will build.
func ExampleLoad() {
	s, err := spec.Load("../../examples/digits/mlpromote.yaml", spec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, target := range s.Targets {
		fmt.Println(s.Model, s.Version, target.Name, target.Variants)
	}
	// Output:
	// vision/digits 1.0.0 linux-amd64-v1 [fp32 int8]
	// vision/digits 1.0.0 linux-amd64-v3 [fp32 int8]
}

// Prints every mistake of a spec with its file, line and column.
func ExampleLoad_mistakes() {
	dir, err := os.MkdirTemp("", "spec-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := "model: vision/digits\nversion: one\nsource: digits.onnx\ncases: cases/\ntargets: [linux/amd64, linux/riscv]\nvariants: [fp32]\n"
	if err := os.WriteFile(filepath.Join(dir, spec.File), []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	_, err = spec.Load(filepath.Join(dir, spec.File), spec.Options{})
	var mistakes *strictyaml.Error
	if !errors.As(err, &mistakes) {
		log.Fatal(err)
	}
	for _, p := range mistakes.Problems {
		fmt.Printf("%s:%d:%d: %s\n", spec.File, p.Line, p.Column, p.Message)
	}
	// Output:
	// mlpromote.yaml:2:10: version "one": want a semantic version without build metadata, for example 1.4.0 or 2.0.0-rc.1
	// mlpromote.yaml:3:9: digits.onnx: no such file or folder (paths start from the folder of the spec)
	// mlpromote.yaml:4:8: cases/: no such file or folder (paths start from the folder of the spec)
	// mlpromote.yaml:5:24: unknown architecture "riscv": want amd64, arm64
}
