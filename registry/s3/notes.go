package s3

import (
	"encoding/json"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// notes is the part of an upload's state that locates its bytes: those in parts, followed by
// the tail.
type notes struct {
	// Key and ID identify the multipart upload, if there is one.
	Key   string `json:"key,omitempty"`
	ID    string `json:"id,omitempty"`
	Parts []part `json:"parts,omitempty"`
	// Used is the highest reserved part number. A writer reserves part numbers by a swap of the
	// state before it sends parts. So two concurrent writers never send the same part.
	Used int `json:"used,omitempty"`
	// Tail has the bytes after the parts if they are few. Otherwise TailKey is the object that has
	// them. TailSize is their number.
	Tail     []byte `json:"tail,omitempty"`
	TailKey  string `json:"tailKey,omitempty"`
	TailSize int64  `json:"tailSize,omitempty"`
}

// encode returns the notes in the form of the state.
func (n notes) encode() (string, error) {
	text, err := json.Marshal(n)
	return string(text), err
}

// readNotes decodes what encode wrote.
func readNotes(state storage.UploadState) (notes, error) {
	var n notes
	decoder := json.NewDecoder(strings.NewReader(state.Place))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&n); err != nil {
		return notes{}, registry.Errorf(registry.CodeInternal,
			"upload %s: its record is not that of an object store: %w; it may have begun in another kind of storage",
			state.ID, err)
	}
	return n, nil
}
