"""LogLinearModel: features with weights, to be asked, sampled and scored. Imports independence and below."""
