package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// oldest is the oldest supported version, that of Debian 12.
const oldest = 15

// missingError says why there is no PostgreSQL to start.
type missingError struct{ why string }

func (e *missingError) Error() string { return e.why }

// findPrograms returns the folder of the newest installed PostgreSQL.
func findPrograms() (string, error) {
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin") // the folders of Debian
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(path))
		}
	}
	best, newest := "", 0
	for _, folder := range folders {
		if version := versionOf(folder); version > newest {
			best, newest = folder, version
		}
	}
	if newest < oldest {
		return "", &missingError{
			fmt.Sprintf("PostgreSQL %d or newer is not installed: on Debian, run sh tools/setup.sh test as root", oldest),
		}
	}
	return best, nil
}

var versionNumber = regexp.MustCompile(`\d+`)

// versionOf returns the major version of the programs in a folder, or 0 if they do not exist.
func versionOf(folder string) int {
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			return 0
		}
	}
	out, err := exec.CommandContext(context.Background(), filepath.Join(folder, "postgres"), "--version").
		Output()
		// it ends by itself
	if err != nil {
		return 0
	}
	version, err := strconv.Atoi(string(versionNumber.Find(out)))
	if err != nil {
		return 0
	}
	return version
}
