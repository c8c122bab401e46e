// Package toolchains has the facts about toolchains that programs without drivers need: which of them a spec may name,
// which options their runtimes take, which share an install. It is a leaf. Its table is generated from the rows of package
// drivers, which are the place to change a fact.
package toolchains

import (
	"slices"
	"strconv"
)

// Reference is the toolchain that runs reference models in ONNX and quantizes them. A target that names no toolchain gets it.
const Reference = "onnxruntime"

// Toolchain is the facts of one toolchain.
type Toolchain struct {
	Name string // "onnxruntime"
	// Engines is true if it makes engines. Other toolchains only import or quantize models.
	Engines bool
	// Accelerators is true if it compiles for GPUs or other devices, too.
	Accelerators bool
	// Shares is the toolchain with the install that it uses; empty for an install of its own.
	Shares string
	// AsIs are the formats of sources that are its engines, byte for byte, as package spec names them.
	AsIs []string
	// Triton is true if Triton has a backend of this name for its engines.
	Triton bool
	// Lacks are operators of ai.onnx.ml that its compiler or runtime does not have, without their domain.
	Lacks []string
	// Options are the load options of its runtime, by their own names. No option takes the path of a file.
	Options map[string]Setting
}

// Setting has the values that a load option may have: a word of the list, or a number of the range. The zero Setting takes any value.
type Setting struct {
	Words    []string
	Min, Max int    // both 0 for no numbers
	Text     string // for messages: "a number from 0 to 9999"
}

// Takes reports whether the option may have a value. Numbers have no sign and no leading zeros.
func (s Setting) Takes(value string) bool {
	if len(s.Words) == 0 && s.Max == 0 {
		return true
	}
	if slices.Contains(s.Words, value) {
		return true
	}
	n, err := strconv.Atoi(value)
	return err == nil && s.Max > 0 && n >= s.Min && n <= s.Max && strconv.Itoa(n) == value
}

// Find returns a toolchain by name. ok is false for a name without a driver, such as a manifest's.
func Find(name string) (t Toolchain, ok bool) {
	all := All()
	at := slices.IndexFunc(all, func(t Toolchain) bool { return t.Name == name })
	if at < 0 {
		return Toolchain{}, false
	}
	return all[at], true
}

// Names returns the names of the toolchains that a condition holds for, in the order of the table.
func Names(holds func(Toolchain) bool) []string {
	var names []string
	for _, t := range All() {
		if holds(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

// AsIs returns the toolchain with engines that are files of a source format, byte for byte; empty for none.
func AsIs(format string) string {
	for _, t := range All() {
		if slices.Contains(t.AsIs, format) {
			return t.Name
		}
	}
	return ""
}
