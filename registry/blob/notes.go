package blob

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// notes is what the state of an upload says about its file.
type notes struct {
	// File is its name under incoming/.
	File string `json:"file"`
	// Boot is the start of the system that wrote last. Bytes may still be in that
	// system's memory alone, so that any other one reads them again before it trusts them.
	Boot string `json:"boot,omitempty"`
	// Busy says that somebody claimed the upload in order to write, and did not say yet
	// that he is done.
	Busy bool `json:"busy,omitempty"`
}

// encode is the notes as a state keeps them.
func (n notes) encode() string {
	text, err := json.Marshal(n)
	if err != nil {
		return "" // strings always encode
	}
	return string(text)
}

// readNotes reads what encode wrote.
func readNotes(state registry.UploadState) (notes, error) {
	var n notes
	err := json.Unmarshal([]byte(state.Place), &n)
	if err != nil || n.File == "" || n.File != filepath.Base(n.File) {
		return notes{}, registry.Errorf(registry.CodeInternal, "upload %s: its record does not name a file: %q; it may have begun in another kind of storage", state.ID, state.Place)
	}
	return n, nil
}

// bootID identifies this boot of the system; containers share it. Where the system does not
// tell, a process trusts only bytes that it wrote itself.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		return id
	}
	return rand.Text()
}
