package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// CheckExternalData checks that each file that m refers to is a regular file inside dir, the
// model's folder, with at least as many bytes as m reads from it.
//
// A location that is absolute, contains ".." or a backslash, leads through a symbolic link, or
// is not a regular file is refused with [registry.CodeUnsafe]: a runtime would read files as weights that
// the model's author may not read. A file that is missing or too short is refused with
// [registry.CodeInvalid]. dir itself and the folders above it may be links.
func CheckExternalData(dir string, m *Model) error {
	if len(m.ExternalData) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open model folder: %w", err)
	}
	defer root.Close()
	return CheckExternalDataIn(root, m)
}

// CheckExternalDataIn does [CheckExternalData] for an open model folder.
func CheckExternalDataIn(root *os.Root, m *Model) error {
	for _, location := range m.ExternalData {
		if err := checkLocation(root, location, m.ExternalBytes[location]); err != nil {
			return err
		}
	}
	return nil
}

// checkLocation checks one location, which ONNX writes with slashes.
func checkLocation(root *os.Root, location string, need int64) error {
	if !isPlainPath(location) {
		return outside(location)
	}
	info, err := walkPath(root, location)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return registry.Errorf(registry.CodeInvalid, "external data %q is missing; put the file next to the model", location)
	case err != nil:
		return err
	case info.Size() < need:
		return registry.Errorf(registry.CodeInvalid,
			"external data %q is truncated at byte %d of %d; copy or export it again", location, info.Size(), need)
	}
	return nil
}

// CheckExternalSizes checks the external data of a model by the sizes of the files beside it. Errors: CodeUnsafe for a
// location outside the model's folder; CodeInvalid for a file that is missing or too short.
func CheckExternalSizes(m *Model, sizeOf func(location string) (size int64, ok bool)) error {
	for _, location := range m.ExternalData {
		if !isPlainPath(location) {
			return outside(location)
		}
		if there, ok := sizeOf(location); !ok || there < m.ExternalBytes[location] {
			return registry.Errorf(registry.CodeInvalid,
				"external data %q is missing or too short: store it next to the model, or in it", location)
		}
	}
	return nil
}

func outside(location string) error {
	return registry.Errorf(registry.CodeUnsafe,
		"external data %q is outside the model's folder or no plain relative path; save the model again with its data next to it", location)
}

// maxFileName is the longest file name, in bytes, of the usual file systems.
const maxFileName = 255

// isPlainPath reports whether a location is a relative path with the same meaning on every
// system that stays in its folder.
func isPlainPath(location string) bool {
	if strings.ContainsAny(location, "\\\x00") || strings.Contains(location, ":") || !filepath.IsLocal(location) {
		return false
	}
	for part := range strings.SplitSeq(location, "/") {
		if part == ".." || len(part) > maxFileName {
			return false
		}
	}
	return true
}

// walkPath checks every component of a path without following links.
func walkPath(root *os.Root, location string) (fs.FileInfo, error) {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(location)), "/")
	for i := range parts {
		info, err := root.Lstat(filepath.Join(parts[:i+1]...))
		if err != nil {
			return nil, fmt.Errorf("look at external data: %w", err)
		}
		if last := i == len(parts)-1; last && info.Mode().IsRegular() {
			return info, nil
		} else if last || !info.IsDir() {
			return nil, registry.Errorf(registry.CodeUnsafe,
				"external data %q leads through %q, which is neither a regular file nor a folder (%v); replace it with the data itself",
				location, strings.Join(parts[:i+1], "/"), info.Mode())
		}
	}
	return nil, fs.ErrNotExist
}
