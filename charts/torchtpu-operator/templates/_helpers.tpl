{{- define "torchtpu.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "torchtpu.fullname" -}}
{{- $name := include "torchtpu.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Release.Name $name -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "torchtpu.selectorLabels" -}}
app.kubernetes.io/name: {{ include "torchtpu.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "torchtpu.labels" -}}
{{ include "torchtpu.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "torchtpu.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "torchtpu.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: with serviceAccount.create=false name the one to use" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "torchtpu.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "torchtpu.priorityClassName" -}}
{{- if .Values.priorityClass.create -}}
{{- default (include "torchtpu.fullname" .) .Values.priorityClass.name -}}
{{- else -}}
{{- .Values.priorityClass.name -}}
{{- end -}}
{{- end -}}

{{- /* Fails with all that is missing of the cluster's address, not with one after the other. */ -}}
{{- define "torchtpu.requireCluster" -}}
{{- $missing := list -}}
{{- range $name := list "project" "location" "cluster" -}}
{{- if not (get $.Values.gke $name) -}}{{- $missing = append $missing (printf "gke.%s" $name) -}}{{- end -}}
{{- end -}}
{{- if $missing -}}
{{- fail (printf "%s: required, the GKE cluster that this chart is installed into: --set gke.project=PROJECT,gke.location=us-east5,gke.cluster=NAME" (join ", " $missing)) -}}
{{- end -}}
{{- end -}}

{{- /* Zones of the default class as JSON {"zones": [...]}. */ -}}
{{- define "torchtpu.defaultZones" -}}
{{- $region := regexReplaceAll "-[a-z]$" .Values.gke.location "" -}}
{{- range .Values.defaultClass.zones -}}
{{- if ne $region (regexReplaceAll "-[a-z]$" . "") -}}
{{- fail (printf "defaultClass.zones: %s is not in %s, the region of gke.location: the cluster can have node pools in its own region only" . $region) -}}
{{- end -}}
{{- end -}}
{{- if .Values.defaultClass.zones -}}
{{- dict "zones" .Values.defaultClass.zones | toJson -}}
{{- else if regexMatch "-[a-z]$" .Values.gke.location -}}
{{- dict "zones" (list .Values.gke.location) | toJson -}}
{{- else -}}
{{- fail (printf "defaultClass.zones: gke.location %q is a region, so name the zones that the default class may use, for example --set 'defaultClass.zones={%s-b}'; or set defaultClass.create=false" .Values.gke.location .Values.gke.location) -}}
{{- end -}}
{{- end -}}
