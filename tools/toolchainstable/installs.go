package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// installs has a row for each toolchain: what a new install of it takes, downloads included. None of pip's and npm's
// caches is used.
func (p program) installs() table {
	t := table{name: "installs", header: "| toolchain | packages | on disk | time to install |\n|---|--:|--:|--:|"}
	for _, tool := range p.tools {
		t.rows = append(t.rows, row{tool: tool.Name, title: fmt.Sprintf("| %s |", p.title(tool.Name)), absent: tool.State != "installed",
			measure: func() (string, error) {
				return p.inFolder(func(dir string) (string, error) { return p.install(dir, tool.Name) })
			}})
	}
	return t
}

func (p program) install(dir, name string) (string, error) {
	environment := []string{"MLPROMOTE_INSTALLS=" + filepath.Join(dir, "installs"), "PIP_NO_CACHE_DIR=1", "npm_config_cache=" + filepath.Join(dir, "npm")}
	begun := time.Now()
	out, ok, err := try(dir, environment, p.path, "toolchain", "install", name)
	if err != nil {
		return "", err
	}
	if !ok {
		return fmt.Sprintf("| | %s |", reason(out, dir)), nil
	}
	took := time.Since(begun)
	out, err = execute(dir, environment, p.path, "toolchain", "list", "--output", "json")
	if err != nil {
		return "", fmt.Errorf("list: %w: %s", err, out)
	}
	var all []struct {
		Name     string
		Installs []struct{ Versions map[string]string }
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return "", err
	}
	packages := 0
	for _, t := range all {
		if t.Name == name && len(t.Installs) > 0 {
			packages = len(t.Installs[0].Versions)
		}
	}
	size, err := sizeOf(filepath.Join(dir, "installs"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d | %d MiB | %.0f s |", packages, size>>20, took.Seconds()), nil
}

// sizeOf adds up the sizes of the files in a folder.
func sizeOf(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
