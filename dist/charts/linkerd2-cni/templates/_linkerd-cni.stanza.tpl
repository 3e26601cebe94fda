{{- define "linkerd-cni.stanza" -}}
name: linkerd-cni
capabilities:
  io.kubernetes.cri.pod-annotations: true
kubernetes:
  kubeconfig: __KUBECONFIG_FILEPATH__
linkerd:
  inbound-ports-to-ignore:
    - {{ .Values.proxyAdminPort | int | quote }}
    - {{ .Values.proxyControlPort | int | quote }}
    {{- range $range := .Values.ignoreInboundPorts | toString | nospace | splitList "," | compact }}
    {{- if not (and (le (int (first (splitList "-" $range))) (int (last (splitList "-" $range)))) (le (int (last (splitList "-" $range))) 65535)) }}
      {{- fail (printf "ignoreInboundPorts: %v is not a port or a range low-high between 1 and 65535" $range) }}
    {{- end }}
    - {{ $range | quote }}
    {{- end }}
  incoming-proxy-port: {{ .Values.inboundProxyPort | int }}
  iptables-mode: {{ .Values.iptablesMode | quote }}
  ipv6: {{ not (eq (toString .Values.disableIPv6) "true") }}
  {{- if .Values.ignoreOutboundPorts | toString | nospace | splitList "," | compact }}
  outbound-ports-to-ignore:
    {{- range $range := .Values.ignoreOutboundPorts | toString | nospace | splitList "," | compact }}
    {{- if not (and (le (int (first (splitList "-" $range))) (int (last (splitList "-" $range)))) (le (int (last (splitList "-" $range))) 65535)) }}
      {{- fail (printf "ignoreOutboundPorts: %v is not a port or a range low-high between 1 and 65535" $range) }}
    {{- end }}
    - {{ $range | quote }}
    {{- else }}
    []
    {{- end }}
  {{- end }}
  outgoing-proxy-port: {{ .Values.outboundProxyPort | int }}
  ports-to-redirect:
    {{- range $range := .Values.portsToRedirect | toString | nospace | splitList "," | compact }}
    {{- if not (and (le (int (first (splitList "-" $range))) (int (last (splitList "-" $range)))) (le (int (last (splitList "-" $range))) 65535)) }}
      {{- fail (printf "portsToRedirect: %v is not a port or a range low-high between 1 and 65535" $range) }}
    {{- end }}
    - {{ $range | int }}
    {{- else }}
    []
    {{- end }}
  {{- if ge (int .Values.proxyGID) 0 }}
  proxy-gid: {{ .Values.proxyGID | int }}
  {{- end }}
  proxy-uid: {{ .Values.proxyUID | int }}
  simulate: false
  use-wait-flag: {{ eq (toString .Values.useWaitFlag) "true" }}
log_level: {{ .Values.logLevel | quote }}
own-pods:
  namespace: {{ .Release.Namespace | quote }}
  daemonset: linkerd-cni
pod-lookup: {{ .Values.podLookup | quote }}
strict-status: {{ eq (toString .Values.strictStatus) "true" }}
type: linkerd-cni
{{- end }}
