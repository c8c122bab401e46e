package export

import (
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// The parts of a CycloneDX 1.7 document that a BOM has. Source: https://cyclonedx.org/schema/bom-1.7.schema.json.

const (
	cdxSchema = "http://cyclonedx.org/schema/bom-1.7.schema.json"
	cdxModel  = "machine-learning-model"
)

type cdxBOM struct {
	Schema       string `json:"$schema"`
	Format       string `json:"bomFormat"`
	SpecVersion  string `json:"specVersion"`
	SerialNumber string `json:"serialNumber,omitempty"`
	Version      int    `json:"version"`
	Metadata     struct {
		Timestamp string       `json:"timestamp,omitempty"`
		Component cdxComponent `json:"component"`
	} `json:"metadata"`
	Components   []cdxComponent  `json:"components"`
	Dependencies []cdxDependency `json:"dependencies"`
}

type cdxComponent struct {
	Type       string         `json:"type"`
	Ref        string         `json:"bom-ref,omitempty"`
	Name       string         `json:"name"`
	Version    string         `json:"version,omitempty"`
	Hashes     []cdxHash      `json:"hashes,omitempty"`
	References []cdxReference `json:"externalReferences,omitempty"`
	Pedigree   *cdxPedigree   `json:"pedigree,omitempty"`
	Card       *cdxModelCard  `json:"modelCard,omitempty"`
	Data       []cdxData      `json:"data,omitempty"`
	Properties []cdxProperty  `json:"properties,omitempty"`
}

type cdxHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type cdxReference struct {
	URL     string    `json:"url"`
	Type    string    `json:"type"`
	Comment string    `json:"comment,omitempty"`
	Hashes  []cdxHash `json:"hashes,omitempty"`
}

type cdxPedigree struct {
	Ancestors []cdxComponent `json:"ancestors,omitempty"`
}

type cdxData struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type cdxProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cdxDependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

type cdxRef struct {
	Ref string `json:"ref"`
}

type cdxFormat struct {
	Format string `json:"format"`
}

type cdxModelCard struct {
	Parameters struct {
		Datasets []cdxRef    `json:"datasets,omitempty"`
		Outputs  []cdxFormat `json:"outputs,omitempty"`
	} `json:"modelParameters"`
	Analysis struct {
		Metrics []cdxMetric `json:"performanceMetrics,omitempty"`
	} `json:"quantitativeAnalysis"`
}

type cdxMetric struct {
	Type     string       `json:"type"`
	Value    string       `json:"value"`
	Slice    string       `json:"slice,omitempty"`
	Interval *cdxInterval `json:"confidenceInterval,omitempty"`
}

type cdxInterval struct {
	Low  string `json:"lowerBound"`
	High string `json:"upperBound"`
}

// hashes are those of a digest; other algorithms than sha256 are left out.
func hashes(d registry.Digest) []cdxHash {
	if d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return nil
	}
	return []cdxHash{{"SHA-256", d.Encoded()}}
}
