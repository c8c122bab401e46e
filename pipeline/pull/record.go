package pull

import (
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
)

// Dir is the folder inside a pulled folder that holds its record, manifest and evidence.
const Dir = ".mlpromote"

// Files inside Dir.
const (
	pulledRecord   = "pull.json"
	pulledManifest = "manifest.json"
	pulledBundles  = "bundles"
)

// Record is the file Dir/pull.json: what was pulled, and from where. It is not signed.
type Record struct {
	V        int             `json:"v"`
	Ref      string          `json:"reference"` // ENV/MODEL@DIGEST of the engine
	Resource string          `json:"resource"`  // what trust and summaries call its repository
	Release  registry.Digest `json:"release"`
	Version  string          `json:"version"`
	Label    string          `json:"label"`
}

func readRecord(dir string) (Record, error) {
	data, err := os.ReadFile(filepath.Join(dir, Dir, pulledRecord))
	if err != nil {
		return Record{}, registry.Errorf(registry.CodeInvalid, "%s was not made by pull: %w", dir, err)
	}
	return parseRecord(dir, data)
}

func parseRecord(dir string, data []byte) (Record, error) {
	var record Record
	if err := registry.DecodeSigned(data, &record); err != nil || record.V != 1 {
		return Record{}, registry.Errorf(registry.CodeInvalid, "%s: %s is not a record of pull version 1", dir, pulledRecord)
	}
	return record, nil
}
