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

// Config says which bucket and where. It has no credentials: those come from the
// environment, from the files of the AWS tools, or from the machine's or pod's role.
type Config struct {
	Bucket   string
	Prefix   string // what all keys begin with, without slashes around it; may be empty
	Endpoint string // URL of the store, without a path
	Region   string
	// Redirect is how long a client may pull from the store itself by a URL that it was
	// given; 0 means that everything passes through the service.
	Redirect time.Duration
}

const (
	defaultRegion = "us-east-1"

	// maxRedirect is what the signature of a URL allows.
	maxRedirect = 7 * 24 * time.Hour

	// credentialsTimeout bounds one request for a role. Outside a cloud it gets no answer.
	credentialsTimeout = 3 * time.Second
)

// ParseURL reads s3://BUCKET[/PREFIX][?endpoint=URL][&region=REGION][&redirect=DURATION].
// Without a region it is defaultRegion, without an endpoint Amazon's of that region.
// Errors: CodeInvalid.
func ParseURL(text string) (Config, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Fragment != "" || u.Opaque != "" {
		return Config{}, invalid("want s3://BUCKET[/PREFIX][?endpoint=URL&region=REGION&redirect=DURATION]")
	}
	if u.User != nil {
		return Config{}, invalid("credentials do not belong into a URL: use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a shared credentials file or a role")
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

// set takes one option of a URL.
func (c *Config) set(option, value string) error {
	switch option {
	case "region":
		c.Region = value
	case "endpoint":
		e, err := url.Parse(value)
		if err != nil || (e.Scheme != "http" && e.Scheme != "https") || e.Host == "" || e.User != nil || strings.Trim(e.Path, "/") != "" || e.RawQuery != "" || e.Fragment != "" {
			return invalid("endpoint: want http://HOST[:PORT] or https://HOST[:PORT]")
		}
		c.Endpoint = e.Scheme + "://" + e.Host
	case "redirect":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second || d > maxRedirect {
			return invalid("redirect %q: want how long a URL is good, from 1s to %v", value, maxRedirect)
		}
		c.Redirect = d
	default:
		return invalid("there is no option %s: want endpoint, region or redirect", option)
	}
	return nil
}

// invalid does not repeat the URL, where somebody may have written a secret after all.
func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, "URL of the storage: "+format, args...)
}

// String is the URL of the bucket, without options.
func (c Config) String() string { return strings.TrimSuffix("s3://"+c.Bucket+"/"+c.Prefix, "/") }

// chain looks for credentials where the AWS tools do.
func chain(region string) *credentials.Credentials {
	client := &http.Client{Timeout: credentialsTimeout}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{Client: client, Region: region},
	})
}
