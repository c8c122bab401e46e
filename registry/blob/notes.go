package blob

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// notes is the part of an upload's state that describes its file.
type notes struct {
	// File is its name under incoming/.
	File string `json:"file"`
	// Boot identifies the boot of the system that wrote last. Bytes may still be only in that
	// system's memory, so any other system reads them again before it relies on them.
	Boot string `json:"boot,omitempty"`
	// Busy says that a writer claimed the upload and has not reported the end of its write yet.
	Busy bool `json:"busy,omitempty"`
}

// encode returns the notes in their stored form.
func (n notes) encode() string {
	text, err := json.Marshal(n)
	if err != nil {
		return "" // strings always encode
	}
	return string(text)
}

// readNotes reads what encode wrote.
func readNotes(state storage.UploadState) (notes, error) {
	var n notes
	err := json.Unmarshal([]byte(state.Place), &n)
	if err != nil || n.File == "" || n.File != filepath.Base(n.File) {
		return notes{}, registry.Errorf(registry.CodeInternal,
			"upload %s: its record does not name a file: %q; it may have begun in another kind of storage", state.ID, state.Place)
	}
	return n, nil
}

// bootID identifies this boot of the system; containers share it. If the system has no such ID,
// a process relies only on bytes that it wrote itself.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		return id
	}
	return rand.Text()
}
