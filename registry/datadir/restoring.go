package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// ClaimRestore checks that the directory is empty, or has the files that an earlier attempt
// restored from the same snapshot. It returns the identity of the catalog that is being restored, which is
// the same for every attempt. Errors: CodeConflict.
func (d Dir) ClaimRestore(snapshot string) (catalog string, err error) {
	text, err := d.line(RestoringFile)
	if err != nil {
		return "", err
	}
	if was, id, _ := strings.Cut(text, "\n"); was == snapshot && id != "" {
		return id, nil
	} else if was != "" && was != snapshot {
		return "", registry.Lastingf(registry.CodeConflict, "%s has an unfinished restore of snapshot %s: finish it with "+
			"--snapshot %s, or remove the directory",
			d.Path, was, was)
	} else if was == "" {
		if err := d.refuseUsed(); err != nil {
			return "", err
		}
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	catalog = hex.EncodeToString(id[:])
	return catalog, d.replace(RestoringFile, []byte(snapshot+"\n"+catalog+"\n"))
}

// refuseUsed returns an error if the directory has any file but its lock.
func (d Dir) refuseUsed() error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != LockFile {
			return registry.Lastingf(registry.CodeConflict,
				"%s is not empty (it has %s): --data must be empty or not exist yet", d.Path, e.Name())
		}
	}
	return nil
}

// FinishRestore marks the directory as complete.
func (d Dir) FinishRestore() error {
	return errors.Join(os.Remove(d.file(RestoringFile)), atomicfile.SyncDir(d.Path))
}

// RefuseHalf returns an error if a restore into the directory did not finish.
func (d Dir) RefuseHalf() error {
	if !d.Has(RestoringFile) {
		return nil
	}
	return registry.WithHint(
		registry.Lastingf(registry.CodeUnavailable, "%s has an unfinished restore: it is still running, or failed", d.Path),
		"mlpromote restore SRC --data %s", d.Path)
}
