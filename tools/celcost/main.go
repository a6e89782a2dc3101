// celcost prints what kube-apiserver estimates each CEL rule of some CRDs to cost, as JSON.
//
// The estimate is the one that decides "estimated rule cost exceeds budget": the compiler of apiextensions-apiserver,
// its cardinalities, its limits.
//
//	celcost crds/*.yaml
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// Rule is one entry of x-kubernetes-validations.
type Rule struct {
	Path    string `json:"path"`  // schema node that carries it: spec.offers[*]; empty: the root
	Index   int    `json:"index"` // in the node's list
	Cost    uint64 `json:"cost"`  // of the rule, times the number of places where it may apply
	Message uint64 `json:"messageCost"`
}

// CRD is one CustomResourceDefinition; Total is what is held against crdLimit.
type CRD struct {
	Kind  string `json:"kind"`
	Rules []Rule `json:"rules"`
	Total uint64 `json:"total"`
}

// Report is what is printed.
type Report struct {
	RuleLimit uint64 `json:"ruleLimit"`
	CRDLimit  uint64 `json:"crdLimit"`
	CRDs      []CRD  `json:"crds"`
}

func main() {
	report := Report{RuleLimit: validation.StaticEstimatedCostLimit, CRDLimit: validation.StaticEstimatedCRDCostLimit}
	for _, path := range os.Args[1:] {
		crd, err := read(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "celcost: %s: %v\n", path, err)
			os.Exit(1)
		}
		report.CRDs = append(report.CRDs, crd)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(report); err != nil {
		fmt.Fprintf(os.Stderr, "celcost: %v\n", err)
		os.Exit(1)
	}
}

func read(path string) (CRD, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return CRD{}, err
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, external); err != nil {
		return CRD{}, err
	}
	result := CRD{Kind: external.Spec.Names.Kind}
	for _, version := range external.Spec.Versions {
		schema := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			version.Schema.OpenAPIV3Schema, schema, nil); err != nil {
			return CRD{}, err
		}
		if err := walk(schema, validation.RootCELContext(schema), "", &result); err != nil {
			return CRD{}, err
		}
	}
	return result, nil
}

func walk(schema *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path string, into *CRD) error {
	if len(schema.XValidations) > 0 {
		if err := estimate(schema, context, path, into); err != nil {
			return fmt.Errorf("%q: %w", path, err)
		}
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		child, here := schema.Properties[name], name
		if path != "" {
			here = path + "." + name
		}
		if err := walk(&child, context.ChildPropertyContext(&child, name), here, into); err != nil {
			return err
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		child := schema.Items.Schema
		if err := walk(child, context.ChildItemsContext(child), path+"[*]", into); err != nil {
			return err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		child := schema.AdditionalProperties.Schema
		if err := walk(child, context.ChildAdditionalPropertiesContext(child), path+"{*}", into); err != nil {
			return err
		}
	}
	return nil
}

func estimate(schema *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path string, into *CRD) error {
	info, err := context.TypeInfo()
	if err != nil {
		return err
	}
	compiled, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
	if err != nil {
		return err
	}
	for index, rule := range compiled {
		if rule.Error != nil {
			return fmt.Errorf("rule %d: %s", index, rule.Error.Detail)
		}
		if rule.MessageExpressionError != nil {
			return fmt.Errorf("message of rule %d: %s", index, rule.MessageExpressionError.Detail)
		}
		// as getExpressionCost there does; a node below an unbounded list has no cardinality of its own
		places := rule.MaxCardinality
		if context.MaxCardinality != nil {
			places = *context.MaxCardinality
		}
		cost := multiply(rule.MaxCost, places)
		into.Rules = append(into.Rules, Rule{Path: path, Index: index, Cost: cost, Message: rule.MessageExpressionMaxCost})
		into.Total = add(into.Total, add(cost, rule.MessageExpressionMaxCost))
	}
	return nil
}

func multiply(a, b uint64) uint64 {
	if a != 0 && ^uint64(0)/a < b {
		return ^uint64(0)
	}
	return a * b
}

func add(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}
