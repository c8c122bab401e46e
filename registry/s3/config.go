package s3

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"mlpromote.dev/mlpromote/registry"
)

// Config identifies the bucket. Credentials come from the environment, from the files of the
// AWS tools, or from the role of the machine or pod.
type Config struct {
	Bucket   string
	Prefix   string // prefix of all keys, without surrounding slashes; may be empty
	Endpoint string // URL of the store, without a path
	Region   string
	// Redirect is the lifetime of URLs for pulls directly from the store; 0 means that all bytes
	// pass through the service.
	Redirect time.Duration
}

const (
	defaultRegion = "us-east-1"

	// maxRedirect is the limit of URL signatures.
	maxRedirect = 7 * 24 * time.Hour

	// credentialsTimeout limits one request for a role. Outside of a cloud nothing responds.
	credentialsTimeout = 3 * time.Second
)

// ParseURL parses s3://BUCKET[/PREFIX][?endpoint=URL][&region=REGION][&redirect=DURATION]. The
// default region is defaultRegion, and the default endpoint that of Amazon for the region.
// Errors: CodeInvalid.
func ParseURL(text string) (Config, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Fragment != "" || u.Opaque != "" {
		return Config{}, invalid("want s3://BUCKET[/PREFIX][?endpoint=URL&region=REGION&redirect=DURATION]")
	}
	if u.User != nil {
		return Config{}, invalid(
			"a URL must not contain credentials: use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a shared credentials file " +
				"or a role",
		)
	}
	c := Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Region: defaultRegion}
	if err := s3utils.CheckValidBucketNameStrict(c.Bucket); err != nil {
		return Config{}, invalid("bucket %q: %v", c.Bucket, err)
	}
	for component := range strings.SplitSeq(c.Prefix, "/") {
		if component == "." || component == ".." || (component == "" && c.Prefix != "") {
			return Config{}, invalid("prefix %q: want names separated by single slashes", c.Prefix)
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, invalid("its options cannot be read: want endpoint, region and redirect, escaped as in any URL")
	}
	for option, values := range query {
		if len(values) != 1 || values[0] == "" {
			return Config{}, invalid("option %s: want one value", option)
		}
		if err := c.set(option, values[0]); err != nil {
			return Config{}, err
		}
	}
	if c.Endpoint == "" {
		c.Endpoint = "https://s3." + c.Region + ".amazonaws.com"
	}
	return c, nil
}

// set sets one option of a URL.
func (c *Config) set(option, value string) error {
	switch option {
	case "region":
		c.Region = value
	case "endpoint":
		e, err := url.Parse(value)
		if err != nil || (e.Scheme != "http" && e.Scheme != "https") || e.Host == "" || e.User != nil ||
			strings.Trim(e.Path, "/") != "" ||
			e.RawQuery != "" ||
			e.Fragment != "" {
			return invalid("endpoint: want http://HOST[:PORT] or https://HOST[:PORT]")
		}
		c.Endpoint = e.Scheme + "://" + e.Host
	case "redirect":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second || d > maxRedirect {
			return invalid("redirect %q: want the lifetime of URLs, from 1s to %v", value, maxRedirect)
		}
		c.Redirect = d
	default:
		return invalid("option %s is unknown: want endpoint, region or redirect", option)
	}
	return nil
}

// invalid returns an error without the URL, which could contain a secret.
func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, "URL of the storage: "+format, args...)
}

// String returns the URL of the bucket, without options.
func (c Config) String() string { return strings.TrimSuffix("s3://"+c.Bucket+"/"+c.Prefix, "/") }

// chain returns credentials from the same sources as the AWS tools.
func chain(region string) *credentials.Credentials {
	client := &http.Client{Timeout: credentialsTimeout}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{Client: client, Region: region},
	})
}
