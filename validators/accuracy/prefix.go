package accuracy

import (
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// prefix is the longest common prefix of the answers and the labels of a case, such as the tokens of a
// text, as a share of the answers: a decoder that goes on from its own wrong token is of no use behind it.
type prefix struct{ shares []float64 }

func (p *prefix) add(output, labels tensor.Tensor) error {
	if err := validate(output, labels); err != nil {
		return err
	}
	right, err := tensor.Right(output, labels)
	if err != nil || len(right) == 0 {
		return err
	}
	answers := len(right) / int(labels.Shape[0])
	for of := range slices.Chunk(right, answers) {
		until := slices.Index(of, false)
		if until < 0 {
			until = answers
		}
		p.shares = append(p.shares, float64(until)/float64(answers))
	}
	return nil
}

func (p *prefix) size() int { return len(p.shares) }

func (p *prefix) columns() Columns { return Columns{"prefix": column(p.shares)} }

func (p *prefix) restore(r *reading) {
	p.shares = r.floats("prefix")
	if i := slices.IndexFunc(p.shares, func(s float64) bool { return !(s >= 0 && s <= 1) }); i >= 0 {
		r.fail("column %sprefix has %v for case %d: want a share from 0 to 1", r.prefix, p.shares[i], i)
	}
}

func (p *prefix) contributions(of []int) Contributions {
	return Contributions{Each: pick(p.shares, of), Least: 0, Most: 1, weight: 1}
}
