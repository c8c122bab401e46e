{{- /* Combinations that cannot work. The schema refuses unknown keys and wrong types before. */ -}}
{{- define "mlpromote.check" -}}
{{- $v := .Values -}}
{{- if not (regexMatch "^[^@[:space:]]+(:[^:/@[:space:]]+|@sha256:[0-9a-f]{64})$" $v.image) -}}
{{- fail (printf "image is %q: want REPOSITORY:VERSION or REPOSITORY@sha256:DIGEST" $v.image) -}}
{{- end -}}
{{- if hasSuffix ":latest" (lower $v.image) -}}
{{- fail (printf "image is %q: name a version, so that an upgrade and a rollback change the image" $v.image) -}}
{{- end -}}
{{- $label := "[a-z0-9]([-a-z0-9]*[a-z0-9])?" -}}
{{- if not (regexMatch (printf "^https://%s([.]%s)*(:[1-9][0-9]{0,4})?$" $label $label) $v.url) -}}
{{- fail (printf "url is %q: want the https:// URL of the service for its clients, https://HOST or https://HOST:PORT in lower case, without a user or a path" $v.url) -}}
{{- end -}}
{{- if gt (regexFind "[0-9]*$" (regexFind ":[0-9]+$" $v.url) | int) 65535 -}}
{{- fail (printf "url is %q: ports end at 65535" $v.url) -}}
{{- end -}}
{{- if not $v.policy.environments -}}
{{- fail "policy.environments is missing: pass the file, --set-file policy.environments=environments.yaml" -}}
{{- end -}}
{{- range $name, $text := $v.policy.files -}}
{{- if has $name (list "environments.yaml" "access.yaml") -}}
{{- fail (printf "policy.files has %s: pass it as policy.environments or policy.access" $name) -}}
{{- end -}}
{{- if contains "PRIVATE KEY" $text -}}
{{- fail (printf "policy.files has a private key, %s: a ConfigMap is no place for it, so name a Secret in keys" $name) -}}
{{- end -}}
{{- end -}}
{{- if and (gt (int $v.replicas) 1) (not $v.stores) -}}
{{- fail (printf "replicas is %d without stores: replicas share a PostgreSQL database and a bucket, so name the Secret with their URLs in stores" (int $v.replicas)) -}}
{{- end -}}
{{- if and $v.stores (or $v.volume.size $v.volume.class) -}}
{{- fail "volume is set beside stores: with stores, catalog and content are not in a volume, so leave volume out" -}}
{{- end -}}
{{- if not (or $v.tls $v.ingress.enabled $v.settings.insecure_http) -}}
{{- fail "nothing terminates TLS: name a Secret with the certificate in tls, or set ingress.enabled; behind a proxy of your own, set settings.insecure_http" -}}
{{- end -}}
{{- if and (not $v.ingress.enabled) (or $v.ingress.class $v.ingress.tls $v.ingress.annotations) -}}
{{- fail "ingress has settings without ingress.enabled: set it to true, or leave the others out" -}}
{{- end -}}
{{- if and (eq $v.service.type "LoadBalancer") (not (or $v.tls $v.settings.insecure_http)) -}}
{{- fail "service.type is LoadBalancer without tls: tokens would cross the network in the clear, so name a Secret with the certificate in tls" -}}
{{- end -}}
{{- if and $v.service.nodePort (ne $v.service.type "NodePort") -}}
{{- fail (printf "service.nodePort is %d: it needs service.type NodePort" (int $v.service.nodePort)) -}}
{{- end -}}
{{- if and $v.serviceMonitor (ne $v.service.type "ClusterIP") -}}
{{- fail (printf "serviceMonitor adds the metrics, which need no token, to a Service of the type %s, outside the cluster: scrape pods by their annotations prometheus.io instead" $v.service.type) -}}
{{- end -}}
{{- end -}}

{{- define "mlpromote.selector" -}}
app.kubernetes.io/name: mlpromote
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mlpromote.metadata" -}}
name: {{ .Release.Name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "mlpromote.selector" . | nindent 2 }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* Host names of the service in the cluster, and those of the setting. */ -}}
{{- define "mlpromote.hosts" -}}
{{- $name := printf "%s.%s" .Release.Name .Release.Namespace -}}
{{ .Release.Name }},{{ $name }},{{ $name }}.svc,{{ $name }}.svc.cluster.local{{ with .Values.settings.hosts }},{{ . }}{{ end }}
{{- end -}}

{{- define "mlpromote.pod" -}}
{{- $v := .Values -}}
{{- $port := ternary "https" "http" (ne $v.tls "") -}}
metadata:
  labels:
    {{- include "mlpromote.selector" . | nindent 4 }}
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/port: "9090"
    prometheus.io/path: /metrics
spec:
  serviceAccountName: {{ .Release.Name }}
  automountServiceAccountToken: false
  enableServiceLinks: false # which would set variables that begin with MLPROMOTE_
  {{- with $v.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  # shutdown-delay for endpoints to be taken out, shutdown-grace for uploads to finish, and a little for traces. The
  # service waits by itself, so there is no preStop hook.
  terminationGracePeriodSeconds: 150
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "mlpromote.selector" . | nindent 10 }}
  containers:
    - name: mlpromote
      image: {{ $v.image | quote }}
      args:
        - serve
        - --listen=:5443
        - --metrics-listen=:9090
        {{- if $v.tls }}
        - --tls-cert=/tls/tls.crt
        - --tls-key=/tls/tls.key
        {{- else }}
        - --insecure-http
        {{- end }}
        - {{ printf "--url=%s" $v.url | quote }}
        - {{ printf "--hosts=%s" (include "mlpromote.hosts" .) | quote }}
        - --auth
      env:
        # Also for commands in the pod, which then see this policy. Without a Secret of keys the folder does not exist, and no
        # command makes a key in a folder that is named.
        - {name: MLPROMOTE_DATA, value: /data}
        - {name: MLPROMOTE_POLICY_DIR, value: /policy}
        - {name: MLPROMOTE_KEYS, value: /keys}
        - {name: MLPROMOTE_SHUTDOWN_DELAY, value: 10s}
        - {name: MLPROMOTE_SHUTDOWN_GRACE, value: 2m}
        {{- range $key, $value := merge (omit $v.settings "hosts" "insecure_http") (dict "log_format" "json") }}
        - name: MLPROMOTE_{{ upper $key }}
          value: {{ if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ int64 $value | quote }}{{ else }}{{ $value | quote }}{{ end }}
        {{- end }}
        {{- with $v.stores }}
        - name: MLPROMOTE_DATABASE
          valueFrom: {secretKeyRef: {name: {{ . }}, key: database}}
        - name: MLPROMOTE_STORAGE
          valueFrom: {secretKeyRef: {name: {{ . }}, key: storage}}
        - name: AWS_ACCESS_KEY_ID
          valueFrom: {secretKeyRef: {name: {{ . }}, key: access-key-id, optional: true}}
        - name: AWS_SECRET_ACCESS_KEY
          valueFrom: {secretKeyRef: {name: {{ . }}, key: secret-access-key, optional: true}}
        {{- end }}
        {{- with $v.keys }}
        - name: COSIGN_PASSWORD
          valueFrom: {secretKeyRef: {name: {{ . }}, key: password}}
        {{- end }}
      ports:
        - {name: {{ $port }}, containerPort: 5443}
        - {name: metrics, containerPort: 9090}
      startupProbe: # the start migrates the database
        httpGet: {path: /healthz, port: {{ $port }}, scheme: {{ upper $port }}}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe: # the process alone: a restart does not bring back a lost database
        httpGet: {path: /healthz, port: {{ $port }}, scheme: {{ upper $port }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: {{ $port }}, scheme: {{ upper $port }}}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 1
      resources:
        {{- toYaml $v.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /data}
        # A folder, because a mount with subPath never changes.
        - {name: policy, mountPath: /policy, readOnly: true}
        {{- if $v.keys }}
        - {name: keys, mountPath: /keys, readOnly: true}
        {{- end }}
        {{- if $v.tls }}
        - {name: tls, mountPath: /tls, readOnly: true}
        {{- end }}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: data
      {{- if $v.stores }}
      emptyDir: {sizeLimit: 64Mi} # the names of catalog and bucket, and no content
      {{- else }}
      persistentVolumeClaim: {claimName: {{ .Release.Name }}}
      {{- end }}
    - name: policy
      configMap: {name: {{ .Release.Name }}}
    {{- with $v.keys }}
    - name: keys
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    {{- with $v.tls }}
    - name: tls
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
{{- end -}}
