package install

import (
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// maxReason bounds what an error quotes of the output of an installer, in bytes.
const maxReason = 1000

var (
	// broken is what pip prints for each attempt to connect: an exception in Python's spelling.
	broken = regexp.MustCompile(`after connection broken by '(.*)': `)
	// cause is the part of such an exception that a person can use.
	cause = regexp.MustCompile(`\[Errno -?\d+\] [^'")]+|\[SSL: [^'")]+|[^'"(]*timed out|Cannot connect to proxy|Tunnel connection failed[^'")]*`)
	// detail is what npm prints beside the reason.
	detail = regexp.MustCompile(`^(code|errno|syscall|address|port|type|method|at |[}{]|A complete log|If you are behind|This is a problem related|'proxy' config|[a-z]+: '?[\w.]+'?,?$)`)
)

// pipReason finds in the output of pip why it failed: what broke the connection, then its errors.
// It is the end of the output where that says neither.
func pipReason(output string) string {
	var causes, failures []string
	within := false // an error has more lines, which are indented
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if found := broken.FindStringSubmatch(line); found != nil {
			text := found[1]
			if plain := cause.FindString(text); plain != "" {
				text = strings.TrimSpace(plain)
			}
			causes = append(causes, "no connection to the package index: "+text)
			continue
		}
		text, failed := strings.CutPrefix(line, "ERROR: ")
		warning, warned := strings.CutPrefix(line, "WARNING: ")
		switch {
		case failed && strings.HasPrefix(text, "No matching distribution found"): // repeats the one before
		case failed:
			failures = append(failures, text)
		case warned && (strings.Contains(warning, "is not a trusted or secure host") ||
			strings.Contains(warning, "Could not fetch") || strings.Contains(warning, " Error, ")):
			causes = append(causes, warning)
		case within && strings.HasPrefix(line, " "):
			failures = append(failures, strings.TrimSpace(line))
		}
		within = failed || within && strings.HasPrefix(line, " ")
	}
	return said(append(causes, failures...), output)
}

// npmReason finds in the output of npm why it failed, without codes and stacks.
func npmReason(output string) string {
	var failures []string
	for line := range strings.Lines(output) {
		text, ok := strings.CutPrefix(line, "npm error")
		if !ok {
			text, ok = strings.CutPrefix(line, "npm ERR!") // before npm 10
		}
		if text = strings.TrimSpace(text); ok && text != "" && !detail.MatchString(text) {
			failures = append(failures, text)
		}
	}
	return said(failures, output)
}

// said joins lines, each once, or gives the end of the output if there are none.
func said(lines []string, output string) string {
	var once []string
	for _, line := range lines {
		if !slices.Contains(once, line) {
			once = append(once, line)
		}
	}
	text := strings.Join(once, "; ")
	if text == "" {
		text = strings.TrimSpace(output)
		text = text[max(0, len(text)-maxReason):]
	}
	return registry.PlainText(text[:min(len(text), maxReason)])
}

// whatToDo is the hint for the reason of a failed install in the folder.
func whatToDo(reason, folder, otherwise string) string {
	switch {
	case diskFull(reason):
		return "free space in " + folder + ", or name another folder in MLPROMOTE_INSTALLS"
	case strings.Contains(reason, "DO NOT MATCH THE HASHES") || strings.Contains(reason, "integrity checksum failed"):
		return "the package index has other files than the lock file names: use one that has the files of the public index unchanged"
	}
	return otherwise
}

// diskFull reports whether the output of a program says that a disk is full.
func diskFull(output string) bool { return strings.Contains(strings.ToLower(output), "no space left") }
