package tie

import (
	"archive/zip"
	"io"
	"regexp"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// driversOfPTX has, by version of the PTX instruction set, the oldest branch of NVIDIA's driver that
// compiles it: https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes. A version between two
// of them is taken for the later one.
var driversOfPTX = []struct {
	ptx    int // 8.4 is 84
	driver string
}{
	{60, "384"}, {61, "387"}, {62, "396"}, {63, "410"}, {64, "418"}, {65, "440"},
	{70, "445"}, {71, "455"}, {72, "460"}, {73, "465"}, {74, "470"}, {75, "495"}, {76, "510"}, {77, "515"}, {78, "520"},
	{80, "525"}, {81, "530"}, {82, "535"}, {83, "545"}, {84, "550"}, {85, "555"}, {86, "565"}, {87, "570"}, {88, "575"}, {90, "580"},
}

// ptxHeader begins each module of PTX.
var ptxHeader = regexp.MustCompile(`\.version ([0-9]{1,2})\.([0-9]{1,2})\s+\.target (sm_[0-9]{2,3}[a-z]?)\b`)

// readPTX adds what the PTX in the other files of a module requires: the newest version, and an
// architecture, which must be the one that the module says. Code for CUDA without PTX gets no version.
func (t *Tie) readPTX(files []*zip.File) error {
	newest, left := 0, maxBytecode
	for _, f := range files {
		if !strings.HasSuffix(f.Name, "_cuda_nvptx_fb.fb") {
			continue
		}
		code, err := readEntry(f)
		if err != nil {
			return err
		}
		if left -= len(code); left < 0 { // entries may share their bytes, and are many then
			return registry.Errorf(registry.CodeInvalid, "the module has more than %d bytes of code for CUDA", maxBytecode)
		}
		if newest, err = t.readHeaders(f.Name, code, newest); err != nil {
			return err
		}
	}
	return t.driverOf(newest)
}

// readHeaders reads the headers in the code of a file, one after the other. It returns the newest version, also of those before.
func (t *Tie) readHeaders(name string, code []byte, newest int) (int, error) {
	for {
		at := ptxHeader.FindSubmatchIndex(code)
		if at == nil {
			return newest, nil
		}
		if arch := string(code[at[6]:at[7]]); arch != t.Arch {
			return 0, registry.Errorf(registry.CodeInvalid, "the module is declared for %s, and %s of it is for %s", t.Arch, name, arch)
		}
		major, _ := strconv.Atoi(string(code[at[2]:at[3]])) // digits, as the pattern says
		minor, _ := strconv.Atoi(string(code[at[4]:at[5]]))
		if version := 10*major + min(minor, 9); version > newest {
			newest, t.PTX = version, string(code[at[2]:at[3]])+"."+string(code[at[4]:at[5]])
		}
		code = code[at[1]:]
	}
}

// driverOf sets the oldest driver that compiles a version of PTX; none where there is no PTX.
func (t *Tie) driverOf(ptx int) error {
	if ptx == 0 {
		return nil
	}
	for _, d := range driversOfPTX {
		if d.ptx >= ptx {
			t.Driver = d.driver
			return nil
		}
	}
	return registry.Errorf(registry.CodeInvalid, "the module has code in PTX %s, and which drivers compile that is not known here", t.PTX)
}

// readEntry reads a file of a module.
func readEntry(f *zip.File) ([]byte, error) {
	entry, err := f.Open()
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "this is not an IREE module: %w", err)
	}
	defer func() { _ = entry.Close() }() // it was only read
	code, err := io.ReadAll(io.LimitReader(entry, maxBytecode+1))
	if err != nil || len(code) > maxBytecode {
		return nil, registry.Errorf(registry.CodeInvalid, "%s of the module cannot be read, or has more than %d bytes: %v", f.Name, maxBytecode, err)
	}
	return code, nil
}
