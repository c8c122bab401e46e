package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events string
		ok     bool
		count  string
		says   []string
	}{
		"nothing ran": {
			events: `{"Action":"skip","Package":"p"}`,
			count:  "0 passed, 0 failed, 0 skipped", says: []string{"No test ran"},
		},
		"tests, subtests and a skip": {
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/b"}
{"Action":"pass","Package":"p","Test":"A/b"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"C","Output":"=== RUN   C\n"}
{"Action":"output","Package":"p","Test":"C","Output":"    c_test.go:7: no such device\n"}
{"Action":"output","Package":"p","Test":"C","Output":"--- SKIP: C (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"pass","Package":"p","Elapsed":1.25}`,
			ok: true, count: "2 passed, 0 failed, 1 skipped", says: []string{"p C: c_test.go:7: no such device", "ok   p 1.2s"},
		},
		"a failure": {
			events: `{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:1: 2 is not 3\n"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}`,
			count: "0 passed, 1 failed, 0 skipped", says: []string{"2 is not 3", "FAIL p A"},
		},
		"a package that does not compile": {
			events: `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: syntax error\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"FAIL p [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
{"Action":"pass","Package":"q","Test":"A"}`,
			count: "1 passed, 1 failed, 0 skipped", says: []string{"syntax error", "[build failed]"},
		},
		"a timeout": {
			events: `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p"}`,
			count: "0 passed, 1 failed, 0 skipped", says: []string{"panic: test timed out"},
		},
		"tests that take time": {
			events: `{"Action":"pass","Package":"p","Test":"A","Elapsed":1.25}
{"Action":"pass","Package":"p","Test":"B/c","Elapsed":12.5}
{"Action":"pass","Package":"p","Test":"D","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":14}`,
			ok: true, count: "3 passed, 0 failed, 0 skipped", says: []string{"\nSlowest packages:\n    14.0s p\n\nSlowest tests:\n    12.5s p B/c\n     1.2s p A\n\n"},
		},
		"lines that are no events": {
			events: "go: downloading something\n" + `{"Action":"pass","Package":"p","Test":"A"}`,
			ok:     true, count: "1 passed, 0 failed, 0 skipped", says: []string{"go: downloading something"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			tally := newTally(&out)
			if err := tally.read(strings.NewReader(tc.events)); err != nil {
				t.Fatal(err)
			}
			if ok := tally.finish(); ok != tc.ok {
				t.Errorf("all is well: %t, want %t", ok, tc.ok)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; last != tc.count {
				t.Errorf("last line %q, want %q", last, tc.count)
			}
			for _, s := range tc.says {
				if !strings.Contains(out.String(), s) {
					t.Errorf("no %q in:\n%s", s, out.String())
				}
			}
		})
	}
}

func TestFuzzNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x_test.go")
	source := "package x\nfunc FuzzA(f *testing.F) {}\nfunc FuzzHelper() {}\nfunc (T) FuzzB(f *testing.F) {}\nfunc TestC(t *testing.T) {}\n"
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := fuzzNames(path); err != nil || !slices.Equal(names, []string{"FuzzA"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestRanOutOfTime(t *testing.T) {
	t.Parallel()
	late := "--- FAIL: FuzzA (2.01s)\n    context deadline exceeded\n"
	if !ranOutOfTime(late) || ranOutOfTime(late+"Failing input written to testdata/fuzz/FuzzA/1") || ranOutOfTime("panic: x") {
		t.Error("a finding must count, the end of the time must not")
	}
}

// Each "--" begins a separate run of go test.
func TestRunsOf(t *testing.T) {
	t.Parallel()
	got := runsOf([]string{"-race", "./a", "--", "./b", "--", "-short", "./c"})
	if want := [][]string{{"-race", "./a"}, {"./b"}, {"-short", "./c"}}; !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPackagesOf(t *testing.T) {
	t.Parallel()
	if got := packagesOf([]string{"-race", "-count=1", "./a/...", "./b"}); !slices.Equal(got, []string{"./a/...", "./b"}) {
		t.Errorf("%q", got)
	}
}

// The slowest are told, and not all.
func TestSlowest(t *testing.T) {
	t.Parallel()
	tally := newTally(&bytes.Buffer{})
	for n := range 3 * slowest {
		tally.add(event{Action: "pass", Package: "p", Test: "T", Elapsed: float64(n)})
	}
	if got := longest(tally.took); len(got) != slowest || got[0] != "  29.0s p T" || got[slowest-1] != "  20.0s p T" {
		t.Errorf("%q", got)
	}
}

// What cannot be fuzzed is a failure, and the count comes all the same, and last.
func TestRunCountsWithoutFuzzing(t *testing.T) {
	module := t.TempDir()
	t.Chdir(module) // where go finds the module, so not in parallel
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"a_test.go": "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"b_test.go": "package m\n\nfunc FuzzB(", // of which no targets can be read
	} {
		path := filepath.Join(module, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	ok, err := run(t.Context(), []string{"-fuzz", "1s", "./..."}, &out)
	if ok || err != nil || !strings.Contains(out.String(), "FAIL fuzzing\n") || !strings.HasSuffix(out.String(), "\n0 passed, 2 failed, 0 skipped\n") {
		t.Errorf("all is well: %t, %v\n%s", ok, err, out.String())
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-fuzz", "soon", "./..."}, {"-fuzz", "-1s", "./..."}} {
		if ok, err := run(t.Context(), args, &bytes.Buffer{}); ok || err == nil {
			t.Errorf("%q: %t, %v", args, ok, err)
		}
	}
}
