package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file decides which registry and policy a person trusts, so nobody else may be able to write or replace it.
func TestUserFileIsPrivate(t *testing.T) {
	t.Parallel()
	const other = 12345
	for name, c := range map[string]struct {
		change func(t *testing.T, folder, file string) error
		root   bool // only root can make it so
		says   string
	}{
		"private":               {func(*testing.T, string, string) error { return nil }, false, ""},
		"a writable file":       {func(_ *testing.T, _, file string) error { return os.Chmod(file, 0o666) }, false, "config.yaml has the mode 0666"},
		"a writable folder":     {func(_ *testing.T, folder, _ string) error { return os.Chmod(folder, 0o777) }, false, "mlpromote has the mode 0777"},
		"another user's file":   {func(_ *testing.T, _, file string) error { return os.Chown(file, other, other) }, true, "config.yaml belongs to another user"},
		"another user's folder": {func(_ *testing.T, folder, _ string) error { return os.Chown(folder, other, other) }, true, "mlpromote belongs to another user"},
		"a link out of a writable folder": {func(t *testing.T, _, file string) error {
			elsewhere := filepath.Join(t.TempDir(), "open")
			target := filepath.Join(elsewhere, "config.yaml")
			if err := os.Mkdir(elsewhere, 0o700); err != nil {
				return err
			}
			if err := os.Rename(file, target); err != nil {
				return err
			}
			if err := os.Symlink(target, file); err != nil {
				return err
			}
			return os.Chmod(elsewhere, 0o777)
		}, false, "open has the mode 0777"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.root && os.Geteuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			home := t.TempDir()
			folder := filepath.Join(home, ".config", "mlpromote")
			file := filepath.Join(folder, "config.yaml")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("data: ~/models\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.change(t, folder, file); err != nil {
				t.Fatal(err)
			}
			getenv, err := new(Flags).UserFile(func(name string) string { return map[string]string{"HOME": home}[name] })
			switch {
			case c.says == "" && (err != nil || getenv("MLPROMOTE_DATA") != filepath.Join(home, "models")):
				t.Errorf("%v, want the data directory of the file", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}
