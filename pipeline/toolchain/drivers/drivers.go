// Package drivers holds the driver programs that are part of mlpromote: for each, its code, the
// lock file of its environment, and the properties of its engines.
//
// A lock file names every package, direct or indirect, with the hashes of its files and no URL.
// For Python it is made from requirements.in in the same folder with `uv pip compile
// --universal --generate-hashes`. All programs share the modules in common.
package drivers

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Names returns the names of all programs.
func Names() []string {
	var names []string
	for _, s := range known() {
		names = append(names, s.Name)
	}
	return names
}

// Importer returns the name of the program that imports a format. Errors: CodeNotFound.
func Importer(format string) (string, error) {
	for _, s := range known() {
		if slices.Contains(s.Imports, format) {
			return s.Name, nil
		}
	}
	return "", registry.Errorf(registry.CodeNotFound, "no toolchain imports format %q", format)
}

// Reading returns how engines in a format are read, for toolchains without a row, such as those of manifests. It is the zero
// Reading for a format that no row has.
func Reading(format string) toolchain.Reading {
	for _, s := range known() {
		for _, p := range s.Profile.Entries() {
			if p.Format == format {
				return p.Reading
			}
		}
	}
	return toolchain.Reading{}
}

// Find returns a program by name. Errors: CodeNotFound, with the known names.
func Find(name string) (Source, error) {
	for _, s := range known() {
		if s.Name == name {
			err := s.read()
			return s, err
		}
	}
	return Source{}, registry.Errorf(registry.CodeNotFound,
		"no toolchain %q: there are %s", name, strings.Join(Names(), ", "))
}
