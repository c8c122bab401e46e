package diagnosis

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/readiness"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// Readiness lists the proofs of a release, and the missing ones.
func (v Verbs) Readiness() *cobra.Command {
	var environment, to string
	c := &cobra.Command{
		Use:   "readiness [REF | MODEL [--env ENV]]",
		Short: "List the proofs of a release, and missing proofs",
		Long: `A checklist for a team before a release goes on: built once, reference model cross-checked, parity on
the target, worst case, accuracy with a bound, latency, load profile, repeats, batches and shapes, calibration, unsafe
formats, signatures, provenance, reproducible build, approvals, node types, labels, rollback target. Each line has its
proof, which is the digest of evidence or of a manifest, or the missing part and the command that supplies it. It tells
which lines the policy of the next environment asks for.

It decides nothing: mlpromote promote --dry-run shows the decision. REF defaults to the last build here.

Exit code 0, whatever is missing.`,
		Example: `  mlpromote readiness staging/vision/digits:1.0.0
  mlpromote readiness vision/digits --env staging --output markdown`,
		Args:        command.AtMost("REF"),
		Annotations: map[string]string{command.Markdown: "the checklist"},
		RunE: func(c *cobra.Command, args []string) error {
			return v.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := v.ModelOrReference(c.Context(), i, "readiness", environment, args)
				if err != nil {
					return err
				}
				list, err := v.checklist(c.Context(), i, ref, to)
				if err != nil {
					return err
				}
				text := readinessText(list)
				if v.Output.Format == command.Markdown {
					text = readinessMarkdown(list)
				}
				return v.UI.Result(text, list)
			})
		},
	}
	c.Flags().StringVar(&environment, "env", "", "environment, if a model is given in place of a ref")
	c.Flags().StringVar(&to, "to", "", "environment that the release is to go to; default: the first that takes releases from the environment of REF")
	return c
}

// checklist is what readiness prints.
type checklist struct {
	Ref         string                    `json:"ref"`
	Release     registry.Digest           `json:"release"`
	Destination string                    `json:"destination,omitempty"` // whose policy is asked; absent if there is none
	Undecided   string                    `json:"undecided,omitempty"`   // why its policy could not be asked
	Items       []readiness.ReadinessItem `json:"items"`
}

func (v Verbs) checklist(ctx context.Context, i *wiring.Instance, ref registry.Ref, to string) (checklist, error) {
	release, err := i.Registry.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return checklist{}, err
	}
	claims, _, err := i.Registry.Claims(ctx, ref.Environment, release)
	if err != nil {
		return checklist{}, err
	}
	full := registry.Ref{Host: i.HostOf(ref.Environment), Environment: ref.Environment, Model: ref.Model, Tag: release.Tag(), Digest: release.Digest}
	list := checklist{Ref: full.String(), Release: release.Digest}
	in := readiness.ReadinessInput{Release: release, Claims: claims, Source: ref.Environment,
		Ref: ref.Environment + "/" + ref.Model + ":" + release.Tag()}
	if _, destination, found := i.Envs.Edge(ref.Environment, to); found == nil {
		list.Destination, in.Destination = destination.Name, destination.Name
		promotion, err := i.Registry.Promote(ctx, api.PromoteRequest{Model: ref.Model, Ref: string(release.Digest), From: ref.Environment,
			To: destination.Name, DryRun: true})
		if len(promotion.Decision.Requirements) > 0 {
			in.Decision = &promotion.Decision
		} else if err != nil {
			list.Undecided = registry.PlainText(err.Error())
		}
	} else if to != "" {
		return list, found
	}
	if in.Head, in.Earlier, err = headsOf(ctx, i, in); err != nil {
		return list, err
	}
	in.Named = named(ctx, i, ref, release)
	list.Items = readiness.Readiness(in)
	return list, nil
}

// headsOf are the releases that an environment has and had, newest first: the next one, or else that of the release.
func headsOf(ctx context.Context, i *wiring.Instance, in readiness.ReadinessInput) (head registry.Digest, earlier []registry.Digest, err error) {
	environment := in.Destination
	if environment == "" {
		environment = in.Source
	}
	heads, err := i.Registry.Heads(ctx, environment, in.Release.Model)
	if err != nil {
		return "", nil, err
	}
	for _, h := range heads {
		head = h.Release
	}
	events, err := i.Registry.History(ctx, history.HistoryQuery{Model: in.Release.Model, Environment: environment, Descending: true, Limit: 1000})
	for _, e := range events {
		if e.Release != "" && !slices.Contains(earlier, e.Release) {
			earlier = append(earlier, e.Release)
		}
	}
	return head, earlier, err
}

// named says whether the interface has names of classes or features; nil if it cannot be read.
func named(ctx context.Context, i *wiring.Instance, ref registry.Ref, release artifact.Release) *bool {
	temp, err := tempdir.New("readiness")
	if err != nil {
		return nil
	}
	defer temp.Remove()
	dir := temp.Path
	part, err := i.Store.Fetch(ctx, registry.Repository(ref.Environment, release.Model), release.Interface, dir)
	if err != nil || len(part.Files) != 1 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	data, err := root.ReadFile(part.Files[0].Path)
	if err != nil {
		return nil
	}
	iface, err := validators.ParseInterface(data)
	if err != nil {
		return nil
	}
	has := func(t validators.TensorInfo) bool { return len(t.Names) > 0 }
	found := slices.ContainsFunc(iface.Inputs, has) || slices.ContainsFunc(iface.Outputs, has)
	return &found
}

// bySubject groups items by what they are about, in their order.
func bySubject(items []readiness.ReadinessItem) (subjects []string, of map[string][]readiness.ReadinessItem) {
	of = make(map[string][]readiness.ReadinessItem)
	for _, item := range items {
		if _, ok := of[item.Subject]; !ok {
			subjects = append(subjects, item.Subject)
		}
		of[item.Subject] = append(of[item.Subject], item)
	}
	return subjects, of
}

func readinessText(l checklist) string {
	text := ui.Plain(l.Ref) + "\n" + destinationText(l) + "\n"
	subjects, of := bySubject(l.Items)
	for _, subject := range subjects {
		rows := [][]string{{"ITEM", "STATE", "ASKED", "DETAIL", "PROOF"}}
		var next []string
		for _, item := range of[subject] {
			rows = append(rows, []string{item.Name, string(item.State), askedText(item, l), item.Detail, proofText(item.Proof)})
			next = append(next, nextText(item)...)
		}
		text += "\n" + ui.Plain(subject) + "\n" + ui.Table(rows) + strings.Join(next, "")
	}
	return text + "\n" + summary(l) + "\n"
}

func destinationText(l checklist) string {
	switch {
	case l.Undecided != "":
		return fmt.Sprintf("the policy of %s could not be asked: %s", ui.Plain(l.Destination), ui.Plain(l.Undecided))
	case l.Destination != "":
		return fmt.Sprintf("ASKED: required by the policy of %s", ui.Plain(l.Destination))
	}
	return "no environment takes releases from this one"
}

func askedText(item readiness.ReadinessItem, l checklist) string {
	if l.Destination == "" || l.Undecided != "" {
		return "-"
	}
	if len(item.Asked) == 0 {
		return "no"
	}
	return strings.Join(item.Asked, ", ")
}

func proofText(proof []registry.Digest) string {
	switch len(proof) {
	case 0:
		return "-"
	case 1:
		return ui.Short(proof[0])
	}
	return fmt.Sprintf("%s and %d more", ui.Short(proof[0]), len(proof)-1)
}

// nextText says how to supply what is missing, and what the policy says.
func nextText(item readiness.ReadinessItem) []string {
	var lines []string
	if item.Refused != "" && item.Refused != item.Detail {
		lines = append(lines, fmt.Sprintf("  %s: the policy refuses: %s\n", item.Name, ui.Plain(item.Refused)))
	}
	if item.Command != "" {
		lines = append(lines, fmt.Sprintf("  %s: %s\n", item.Name, ui.Plain(item.Command)))
	}
	return lines
}

func summary(l checklist) string {
	counts := make(map[readiness.ReadinessState]int)
	asked := 0
	for _, item := range l.Items {
		counts[item.State]++
		if len(item.Asked) > 0 && item.State != readiness.Ready && item.State != readiness.NotApplicable {
			asked++
		}
	}
	text := fmt.Sprintf("%d ready, %d missing, %d failing, %d not applicable", counts[readiness.Ready], counts[readiness.Missing],
		counts[readiness.Failing], counts[readiness.NotApplicable])
	if l.Destination != "" && l.Undecided == "" {
		text += fmt.Sprintf("; the policy of %s requires %d of the items that are missing or failing", ui.Plain(l.Destination), asked)
	}
	return text
}

// boxOf is ticked for what is proven. What the release does not have needs no box.
func boxOf(s readiness.ReadinessState) string {
	switch s {
	case readiness.Ready:
		return "[x] "
	case readiness.NotApplicable:
		return ""
	}
	return "[ ] "
}

// readinessMarkdown is the checklist for a comment, with a box for each line that can be ticked.
func readinessMarkdown(l checklist) string {
	text := "# Readiness of `" + ui.Plain(l.Ref) + "`\n\n" + destinationText(l) + "\n"
	subjects, of := bySubject(l.Items)
	for _, subject := range subjects {
		text += "\n## " + escaped(subject) + "\n\n"
		for _, item := range of[subject] {
			text += fmt.Sprintf("- %s**%s** (%s): %s", boxOf(item.State), item.Name, item.State, escaped(item.Detail))
			if len(item.Asked) > 0 {
				text += "; asked by " + strings.Join(item.Asked, ", ")
			}
			for _, d := range item.Proof[:min(len(item.Proof), 3)] {
				text += " `" + string(d) + "`"
			}
			if item.Command != "" {
				text += "\n  Next: `" + strings.ReplaceAll(ui.Plain(item.Command), "`", "'") + "`"
			}
			text += "\n"
		}
	}
	return text + "\n" + summary(l) + "\n"
}

// escaped is text in which nothing is Markdown.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "<", `\<`, "|", `\|`, "#", `\#`).Replace(ui.Plain(text))
}
