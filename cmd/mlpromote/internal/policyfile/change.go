package policyfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/signer"
)

// readPublicKey reads a public key and its identifier.
func readPublicKey(path string) (pem []byte, id string, err error) {
	pem, err = strictyaml.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", registry.Errorf(registry.CodeNotFound, "public key %s: no such file", path)
	}
	if err != nil {
		return nil, "", err
	}
	if bytes.Contains(pem, []byte("PRIVATE KEY")) {
		return nil, "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s is a private key: want the public one", path),
			"mlpromote key generate and cosign write it next to the private key, as NAME.pub")
	}
	if id, err = signer.KeyID(pem); err != nil {
		return nil, "", registry.Errorf(registry.CodeInvalid, "%s: %w", path, err)
	}
	return pem, id, nil
}

// Change is a change of environments.yaml by a command.
type Change struct {
	Path       string // of the file
	Missing    bool   // there is no such file yet
	Data       []byte // its bytes, or the default
	New        []byte // its next bytes
	Was, Is    config.Snapshot
	files      config.Files
	unlockFile func()
	temp       *tempdir.Dir // of the candidate
	made       string       // the policy folder, if this command made it
}

// Begin reads environments.yaml, or the default, for a change. Until it ends, no other
// command changes the file. Errors: CodeConflict while another command changes it; others as of
// [config.Files.Read].
func Begin(l wiring.Location) (*Change, error) {
	c := &Change{Path: filepath.Join(l.PolicyFolder(), environments.File), files: Files(l)}
	if _, err := os.Lstat(l.PolicyFolder()); errors.Is(err, fs.ErrNotExist) {
		c.made = l.PolicyFolder()
	}
	if err := os.MkdirAll(l.PolicyFolder(), 0o700); err != nil {
		return nil, registry.Lastingf(registry.CodeUnavailable, "make folder for %s: %w", environments.File, err)
	}
	if l.PolicyDir == "" {
		if err := wiring.IgnoreAll(l.Data); err != nil {
			return nil, err
		}
	}
	unlock, err := lockFolder(l.PolicyFolder())
	if err != nil {
		return nil, err
	}
	c.unlockFile = unlock
	if c.Was, err = c.files.Read(); err == nil {
		c.Data, err = strictyaml.ReadFile(c.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		c.Missing, c.Data, err = true, environments.Default(), nil
	}
	if err != nil {
		return nil, errors.Join(err, c.End())
	}
	c.New, c.Is = c.Data, c.Was
	return c, nil
}

// End lets other commands change the file. Of a change that was not written, nothing is left.
func (c *Change) End() error {
	err := c.removeEmpty()
	c.unlockFile()
	if c.temp == nil {
		return err
	}
	return errors.Join(err, c.temp.Remove())
}

// removeEmpty removes the policy folder if this command made it and it has at most the list of what git ignores.
// It stays if another command has begun to use it.
func (c *Change) removeEmpty() error {
	if c.made == "" {
		return nil
	}
	entries, err := os.ReadDir(c.made)
	if err != nil || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != wiring.IgnoreFile {
		return err
	}
	if len(entries) == 0 {
		return os.Remove(c.made)
	}
	if err := os.Remove(filepath.Join(c.made, wiring.IgnoreFile)); err != nil {
		return err
	}
	if err := os.Remove(c.made); err != nil {
		return wiring.IgnoreAll(c.made) // it is not empty any more
	}
	return nil
}

// Propose sets the new bytes and parses them. Errors: as of [config.Files.Read].
func (c *Change) Propose(data []byte) (err error) {
	if c.temp == nil {
		if c.temp, err = tempdir.New("policy"); err != nil {
			return err
		}
	}
	if err := os.WriteFile(c.Candidate().File, data, 0o600); err != nil {
		return err
	}
	c.New = data
	c.Is, err = c.Candidate().Read()
	return err
}

// Present is the configuration without the change.
func (c *Change) Present() config.Files { return c.files }

// Candidate is the configuration with the proposed bytes in the place of environments.yaml, until End.
func (c *Change) Candidate() config.Files {
	files := c.files
	files.File = filepath.Join(c.temp.Path, environments.File)
	return files
}

// Write replaces environments.yaml.
func (c *Change) Write() error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(c.Path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := atomicfile.Write(c.Path, c.New, mode); err != nil {
		return registry.Lastingf(registry.CodeUnavailable, "write %s: %w", c.Path, err)
	}
	return nil
}

// lockFolder lets one command at a time change the files of a folder.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, registry.Errorf(registry.CodeConflict, "another command changes %s at this moment: try again", filepath.Join(dir, environments.File))
	}
	return func() { f.Close() }, nil
}

// Files is the configuration that l names, with the identifiers of its keys.
func Files(l wiring.Location) config.Files {
	files := l.Files()
	files.KeyID = signer.KeyID
	return files
}
