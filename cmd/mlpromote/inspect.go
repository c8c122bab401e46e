package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
)

// inspection is what is known about a release in an environment.
type inspection struct {
	Reference string             `json:"reference"`
	Release   registry.Release   `json:"release"`
	Engines   []inspectedEngine  `json:"engines"`
	Evidence  []inspectedClaim   `json:"evidence"`
	Ignored   []registry.Ignored `json:"ignored,omitempty"`
	claims    []registry.Claim
}

type inspectedEngine struct {
	Label       string                      `json:"label"`
	Digest      registry.Digest             `json:"digest"`
	Parity      *registry.ParityReport      `json:"parity,omitempty"`
	Performance *registry.PerformanceReport `json:"performance,omitempty"`
}

type inspectedClaim struct {
	Bundle        registry.Digest `json:"bundle"`
	Subject       registry.Digest `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Signer        string          `json:"signer"`
	Roles         []registry.Role `json:"roles"`
}

func (a *app) inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect [REF]",
		Short: "Show a release, its engines and the evidence for them",
		Args:  atMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *instance) error {
				ref, err := a.reference(args)
				if err != nil {
					return err
				}
				found, err := inspect(c.Context(), i, ref)
				if err != nil {
					return err
				}
				return a.ui.result(inspectText(found), found)
			})
		},
	}
}

func inspect(ctx context.Context, i *instance, ref registry.Reference) (inspection, error) {
	r, err := i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return inspection{}, err
	}
	claims, ignored, err := i.Claims(ctx, ref.Environment, r)
	if err != nil {
		return inspection{}, err
	}
	counted, misplaced := registry.Accept(r, claims)
	full := registry.Reference{Environment: ref.Environment, Model: ref.Model, Tag: r.Tag(), Digest: r.Digest}
	found := inspection{Reference: full.String(), Release: r, Ignored: append(ignored, misplaced...), claims: claims}
	for _, e := range r.Engines {
		found.Engines = append(found.Engines, inspectedEngine{
			Label: e.Label(), Digest: e.Digest,
			Parity:      latest[registry.ParityReport](counted, e.Digest, registry.PredicateParity),
			Performance: latest[registry.PerformanceReport](counted, e.Digest, registry.PredicatePerformance),
		})
	}
	for _, c := range counted {
		found.Evidence = append(found.Evidence, inspectedClaim{c.Bundle, c.Subject, c.Statement.PredicateType, c.Signer, c.Roles})
	}
	return found, nil
}

// latest reads the newest report of a kind about an engine, for showing; what counts
// is for the policy to say.
func latest[R any](claims []registry.Claim, engine registry.Digest, predicateType string) *R {
	var newest *R
	var when time.Time
	for _, c := range claims {
		var head registry.ReportHead
		report := new(R)
		if c.Subject != engine || c.Statement.PredicateType != predicateType ||
			json.Unmarshal(c.Statement.Predicate, &head) != nil || json.Unmarshal(c.Statement.Predicate, report) != nil {
			continue
		}
		if newest == nil || head.FinishedOn.After(when) {
			newest, when = report, head.FinishedOn
		}
	}
	return newest
}

func inspectText(i inspection) string {
	r := i.Release
	rows := [][]string{append(append([]string{}, engineHeader()...), "SIZE", "TOOLCHAIN", "DIGEST")}
	for n, e := range i.Engines {
		verdict := "-"
		if e.Parity != nil {
			verdict = string(e.Parity.Verdict)
		}
		row := append([]string{e.Label, verdict}, figures(e.Parity, e.Performance)...)
		engine := r.Engines[n]
		rows = append(rows, append(row, size(engine.Bytes), engine.Toolchain.Name+" "+engine.Toolchain.Version, short(engine.Digest)))
	}
	return fmt.Sprintf("%s\nmodel      %s %s\nsources    %s\nlimits     %s\nreference  %s\n\n%s\nevidence: %s\n",
		i.Reference, r.Model, r.Tag(), r.Sources, r.Limits, reference(r), table(rows), evidenceText(i))
}

func reference(r registry.Release) registry.Digest {
	if len(r.Engines) == 0 {
		return "-"
	}
	return r.Engines[0].Reference
}

func evidenceText(i inspection) string {
	counts := make(map[string]int)
	for _, e := range i.Evidence {
		counts[e.PredicateType]++
	}
	text := ""
	for _, kind := range sortedNames(counts) {
		text += fmt.Sprintf("\n  %d  %s", counts[kind], kind)
	}
	if len(i.Ignored) > 0 {
		text += fmt.Sprintf("\n  %d  ignored:", len(i.Ignored))
		for _, ignored := range i.Ignored {
			text += fmt.Sprintf("\n     %s: %s", short(ignored.Bundle), ignored.Reason)
		}
	}
	if text == "" {
		return "none"
	}
	return text
}

// short is enough of a digest to tell it from others by eye.
func short(d registry.Digest) string {
	if len(d) < 19 {
		return string(d)
	}
	return string(d[:19])
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
}

func (a *app) listCommand() *cobra.Command {
	var environment, model string
	c := &cobra.Command{
		Use:   "list",
		Short: "List what every environment has",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(i *instance) error {
				heads, err := i.Heads(c.Context(), environment, model)
				if err != nil {
					return err
				}
				rows := [][]string{{"ENVIRONMENT", "MODEL", "VERSION", "SINCE", "HOLD", "DIGEST"}}
				for _, h := range heads {
					rows = append(rows, []string{h.Environment, h.Model, h.Version, h.Since.UTC().Format(time.DateTime), dash(h.Hold), string(h.Release)})
				}
				return a.ui.result(table(rows), slices.Concat([]registry.Head{}, heads))
			})
		},
	}
	c.Flags().StringVar(&environment, "env", "", "only this environment")
	c.Flags().StringVar(&model, "model", "", "only this model")
	return c
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
