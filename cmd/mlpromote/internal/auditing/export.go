package auditing

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/history"
)

// exportedHistory is what history export wrote.
type exportedHistory struct {
	File   string          `json:"file"`
	Format string          `json:"format"` // csv or jsonl
	Events int             `json:"events"`
	Last   registry.Digest `json:"last"` // hash of the last event
}

// Export writes the whole history to a file.
func (v Verbs) Export() *cobra.Command {
	var format, out string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the whole history as CSV or JSON lines, checked on the way",
		Long: `Writes every event, oldest first, and checks the chain of hashes and the checkpoints that the
registry keeps while it writes. If a check fails, the exit code is 5. FILE then stays as it was;
what went to stdout is not to be used.

jsonl has an event on each line, as canonical JSON, from which its hash follows. csv has a column
for each field; several digests are separated by spaces. A cell that begins with = + - @ ' or white
space gets a ' before it, so that no spreadsheet takes it for a formula: without the first ' of
such a cell it is the field again.`,
		Example: "  mlpromote history export --format csv -o history.csv\n  mlpromote history export --format jsonl | jq .kind",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "csv" && format != "jsonl" {
				return registry.Errorf(registry.CodeInvalid, "--format %q: want csv or jsonl", format)
			}
			if out == "" && v.UI.JSON {
				return registry.Errorf(registry.CodeInvalid, "--output json describes a file that was written: name one with -o FILE")
			}
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.export(c.Context(), i, format, out) })
		},
	}
	c.Flags().StringVar(&format, "format", "", "csv or jsonl")
	c.Flags().StringVarP(&out, "out", "o", "", "file to write (default: stdout)")
	command.Required(c, "format")
	return c
}

func (v Verbs) export(ctx context.Context, i *wiring.Instance, format, out string) error {
	if out == "" {
		_, err := v.exportTo(ctx, i, format, v.UI.Stdout)
		return err
	}
	var checked checkedHistory
	err := atomicfile.WriteFrom(out, 0o644, func(w io.Writer) (err error) {
		checked, err = v.exportTo(ctx, i, format, w)
		return err
	})
	if err != nil {
		return err
	}
	return v.UI.Result(fmt.Sprintf("%s: %s, last %s", ui.Plain(out), registry.Count(checked.Events, "event"), ui.Dash(string(checked.Last))),
		exportedHistory{out, format, checked.Events, checked.Last})
}

// exportTo writes and checks all events.
func (v Verbs) exportTo(ctx context.Context, i *wiring.Instance, format string, to io.Writer) (checkedHistory, error) {
	against, err := v.anchors(ctx, i, nil, "")
	if err != nil {
		return checkedHistory{}, err
	}
	buffer := bufio.NewWriter(to)
	write := jsonLines(buffer)
	if format == "csv" {
		if write, err = csvRows(buffer); err != nil {
			return checkedHistory{}, err
		}
	}
	read := against.read()
	for e, err := range wholeHistory(ctx, i) {
		if err == nil {
			err = read.add(e)
		}
		if err == nil {
			err = write(e)
		}
		if err != nil {
			return checkedHistory{}, err
		}
	}
	checked, err := against.compare(i, read)
	if err != nil {
		return checkedHistory{}, err
	}
	return checked, buffer.Flush()
}

// jsonLines writes events as canonical JSON, one on a line.
func jsonLines(w io.Writer) func(history.Event) error {
	return func(e history.Event) error {
		line, err := registry.CanonicalJSON(e)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, ui.SeenJSON(string(line))+"\n")
		return err
	}
}

// csvRows writes events as rows below a header (RFC 4180), with the keys of their JSON as columns.
func csvRows(w io.Writer) (func(history.Event) error, error) {
	rows := csv.NewWriter(w)
	rows.UseCRLF = true
	columns := eventColumns()
	if err := rows.Write(columns); err != nil {
		return nil, err
	}
	return func(e history.Event) error {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		var fields map[string]any
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		if err := decoder.Decode(&fields); err != nil {
			return err
		}
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = csvCell(fields[column])
		}
		if err := rows.Write(cells); err != nil {
			return err
		}
		rows.Flush()
		return rows.Error()
	}, nil
}

// eventColumns are the keys of an event, in the order of its fields.
func eventColumns() []string {
	var columns []string
	for field := range reflect.TypeFor[history.Event]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		columns = append(columns, name)
	}
	return columns
}

// csvCell gives a field as a cell that no spreadsheet takes for a formula. Source of the characters:
// OWASP, "CSV Injection"; the ' is among them so that a reader knows which one to take away.
func csvCell(field any) string {
	text := ""
	switch f := field.(type) {
	case nil:
	case []any:
		parts := make([]string, len(f))
		for i, part := range f {
			parts[i] = fmt.Sprint(part)
		}
		text = strings.Join(parts, " ")
	case map[string]any:
		written, _ := json.Marshal(f) // which was JSON before
		text = string(written)
	default:
		text = fmt.Sprint(f)
	}
	if text != "" && strings.ContainsRune("=+-@' \t\r\n\u00a0\uff1d\uff0b\uff0d\uff20", []rune(text)[0]) {
		return "'" + text
	}
	return text
}
