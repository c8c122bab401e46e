package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

const (
	signAlgorithm = "AWS4-HMAC-SHA256"
	signTime      = "20060102T150405Z"
)

// presign returns the URL of a request without a body, such as a DELETE, that the store
// accepts for some seconds from at, by its own clock. The library signs with the clock of this
// machine, which may be wrong, and with the time of the call. Query parameters are those of
// Signature Version 4: docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html.
func presign(method string, u url.URL, who credentials.Value, region string, at time.Time, seconds int) url.URL {
	at = at.UTC()
	day := at.Format("20060102")
	scope := strings.Join([]string{day, region, "s3", "aws4_request"}, "/")
	query := url.Values{
		"X-Amz-Algorithm":     {signAlgorithm},
		"X-Amz-Credential":    {who.AccessKeyID + "/" + scope},
		"X-Amz-Date":          {at.Format(signTime)},
		"X-Amz-Expires":       {strconv.Itoa(seconds)},
		"X-Amz-SignedHeaders": {"host"},
	}
	if who.SessionToken != "" {
		query.Set("X-Amz-Security-Token", who.SessionToken)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	request := sha256.Sum256([]byte(strings.Join([]string{
		method, s3utils.EncodePath(u.Path), u.RawQuery, "host:" + u.Host + "\n", "host", "UNSIGNED-PAYLOAD",
	}, "\n")))
	text := strings.Join([]string{signAlgorithm, at.Format(signTime), scope, hex.EncodeToString(request[:])}, "\n")
	key := []byte("AWS4" + who.SecretAccessKey)
	for _, part := range []string{day, region, "s3", "aws4_request"} {
		key = keyed(key, part)
	}
	u.RawQuery += "&X-Amz-Signature=" + hex.EncodeToString(keyed(key, text))
	return u
}

// keyed is the HMAC-SHA256 of a text.
func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
