package s3

import (
	"encoding/json"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// notes is what the state of an upload says about where its bytes are: those of the
// parts, and then the tail.
type notes struct {
	// Key and ID are those of the multipart upload, if there is one.
	Key   string `json:"key,omitempty"`
	ID    string `json:"id,omitempty"`
	Parts []part `json:"parts,omitempty"`
	// Used is the highest number of a part that is taken. Whoever sends parts takes their
	// numbers first, by a swap of the state: of two writers who do not know of each other,
	// none sends a part in place of the other one's.
	Used int `json:"used,omitempty"`
	// Tail is the bytes behind the parts where they are few, TailKey the object that has
	// them where they are not, and TailSize their number.
	Tail     []byte `json:"tail,omitempty"`
	TailKey  string `json:"tailKey,omitempty"`
	TailSize int64  `json:"tailSize,omitempty"`
}

// encode is the notes as a state keeps them.
func (n notes) encode() (string, error) {
	text, err := json.Marshal(n)
	return string(text), err
}

// readNotes reads what encode wrote.
func readNotes(state registry.UploadState) (notes, error) {
	var n notes
	decoder := json.NewDecoder(strings.NewReader(state.Place))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&n); err != nil {
		return notes{}, registry.Errorf(registry.CodeInternal, "upload %s: its record is none of an object store: %w; was it begun in another kind of storage?", state.ID, err)
	}
	return n, nil
}
