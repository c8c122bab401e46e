package integration

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// maxJobs is how many jobs a matrix may have in GitHub Actions. Source: https://docs.github.com/en/actions/reference/limits.
const maxJobs = 256

// matrix is the matrix of jobs that build a spec, in the form of GitHub Actions: strategy.matrix.
type matrix struct {
	Include []matrixJob `json:"include"`
}

// matrixJob builds the engines of a target.
type matrixJob struct {
	Target string `json:"target"`
	Runner string `json:"runner"` // label of the runners
}

// shard is the k-th of n parts of a list, from 1.
type shard struct{ k, n int }

// parseShard reads k/n. Errors: CodeInvalid.
func parseShard(text string) (shard, error) {
	before, after, ok := strings.Cut(text, "/")
	k, errK := strconv.Atoi(before)
	n, errN := strconv.Atoi(after)
	if !ok || errK != nil || errN != nil || k < 1 || n < k {
		return shard{}, registry.Errorf(registry.CodeInvalid, "--shard %q: want K/N, such as 1/2, with K from 1 to N", text)
	}
	return shard{k, n}, nil
}

// matrixOf lists the targets of a shard, in the order of the spec. Errors: CodeInvalid for more jobs than a matrix may have.
func matrixOf(targets []spec.Target, s shard, runner string) (matrix, error) {
	m := matrix{Include: []matrixJob{}}
	for _, t := range targets[(s.k-1)*len(targets)/s.n : s.k*len(targets)/s.n] {
		job := matrixJob{t.Name, t.Runner}
		if job.Runner == "" {
			job.Runner = runner
		}
		m.Include = append(m.Include, job)
	}
	if len(m.Include) > maxJobs {
		return matrix{}, registry.Errorf(registry.CodeInvalid,
			"%d targets are more than the %d jobs of a matrix: run it in several workflows, with --shard 1/%d and so on",
			len(m.Include), maxJobs, (len(targets)+maxJobs-1)/maxJobs)
	}
	return m, nil
}

// matrixCommand prints the jobs that build a spec.
func (v Verbs) matrixCommand() *cobra.Command {
	var file, runner, part string
	c := &cobra.Command{
		Use:   "matrix",
		Short: "List the targets of a spec as a matrix of jobs",
		Long: `Prints one job for each target, with the label of its runner (targets.runner in the spec): a JSON object in one line, as
GitHub Actions takes it for strategy.matrix. A matrix has at most 256 jobs there: --shard K/N prints the K-th of N parts. A part
without targets has no jobs, which GitHub refuses: skip its job with if.`,
		Example: "  mlpromote ci matrix --shard 1/2",
		Args:    command.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			s, err := v.Toolchains().LoadSpec(file)
			if err != nil {
				return err
			}
			of, err := parseShard(part)
			if err != nil {
				return err
			}
			m, err := matrixOf(s.Targets, of, runner)
			if err != nil {
				return err
			}
			text, err := json.Marshal(m)
			if err != nil {
				return fmt.Errorf("matrix: %w", err)
			}
			return v.UI.Result(ui.Plain(string(text)), m)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "mlpromote.yaml", "spec to read")
	c.Flags().StringVar(&part, "shard", "1/1", "part of the targets, as K/N")
	c.Flags().StringVar(&runner, "runner", "ubuntu-latest", "label of the runners of targets that name none")
	return c
}

func matrixDocuments() map[string][]reflect.Type {
	return map[string][]reflect.Type{"ci matrix": {reflect.TypeFor[matrix]()}}
}
