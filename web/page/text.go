package page

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Moment is a time as pages show it: how long ago, with the time itself for machines and for a hint.
type Moment struct {
	Ago      string // "3 h ago"
	ISO      string
	Absolute string // "2026-11-23 21:40 UTC"
}

// MomentOf describes a time. The zero time becomes the zero Moment.
func MomentOf(now storage.Clock, t time.Time) Moment {
	if t.IsZero() {
		return Moment{}
	}
	t = t.UTC()
	return Moment{ago(now().Sub(t)), t.Format(time.RFC3339), t.Format("2006-01-02 15:04:05 UTC")}
}

// ago describes a duration by its largest unit.
func ago(d time.Duration) string {
	future := d < -time.Minute
	if future {
		d = -d
	}
	var text string
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		text = fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		text = fmt.Sprintf("%d h", d/time.Hour)
	default:
		text = fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	if future {
		return "in " + text
	}
	return text + " ago"
}

// ShortDuration describes a duration that somebody set: "1 h", "7 days".
func ShortDuration(d time.Duration) string {
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return registry.Count(int64(d/(24*time.Hour)), "day")
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return d.String()
}

// Sentence makes a sentence of the text of an error. One that begins with a name or a value keeps its first letter.
func Sentence(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if first != "mlpromote" && strings.Trim(first, "abcdefghijklmnopqrstuvwxyz") == "" && first != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if text != "" && !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

// Number writes an integer.
func Number(n int64) string { return strconv.FormatInt(n, 10) }

// Digest is a digest as pages show it.
type Digest struct{ Short, Full string }

// ShortDigest is how many hexadecimal digits are shown.
const ShortDigest = 12

// DigestOf describes a digest. A text without an algorithm becomes the zero Digest.
func DigestOf(d registry.Digest) Digest {
	_, hex, ok := strings.Cut(string(d), ":")
	if !ok {
		return Digest{}
	}
	return Digest{hex[:min(len(hex), ShortDigest)], string(d)}
}

// NameOf shortens the name of a principal: it drops the prefix for tokens, and the issuer of subjects.
func NameOf(name string) string {
	if _, rest, ok := strings.Cut(name, "token:"); ok && strings.HasPrefix(name, "token:") {
		return rest
	}
	if rest, ok := strings.CutPrefix(name, "oidc:"); ok {
		if _, subject, ok := strings.Cut(rest, "#"); ok {
			return subject
		}
		return rest
	}
	return name
}

// ByteSize describes a number of bytes.
func ByteSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v := float64(n)
	i := 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
}

// Latency describes nanoseconds.
func Latency(ns int64) string {
	switch {
	case ns <= 0:
		return ""
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", float64(ns)/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3g s", float64(ns)/1e9)
}

// LatencyBounds describes bounds of a latency in nanoseconds; 0 is one that is not known.
func LatencyBounds(low, high int64) string {
	switch {
	case low <= 0 && high <= 0:
		return ""
	case high <= 0:
		return "at least " + Latency(low)
	case low <= 0:
		return "at most " + Latency(high)
	}
	return Latency(low) + " to " + Latency(high)
}

// Explain returns the part of an error that a reader may know, with its hints, and logs the rest.
func Explain(logger *slog.Logger, r *http.Request, err error) (text string, hints []string) {
	switch registry.CodeOf(err) {
	case registry.CodeInternal, registry.CodeUnavailable:
		logger.ErrorContext(r.Context(), "a page could not be read", "path", r.URL.Path, "error", err)
		return "The service could not read its data. Its log has the reason. Try again in a moment.", nil
	}
	text, all := registry.TextForClients(err)
	if !all {
		logger.WarnContext(r.Context(), "a page was refused", "path", r.URL.Path, "error", err)
	}
	return registry.PlainText(text), registry.Hints(err)
}

// Plain makes one plain line of each text.
func Plain(lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, registry.PlainText(line))
	}
	return all
}

// DigestsOf describes digests.
func DigestsOf(all []registry.Digest) []Digest {
	var out []Digest
	for _, d := range all {
		out = append(out, DigestOf(d))
	}
	return out
}
