"""LogLinearModel: a structure with weights that can be asked, sampled and scored. Imports independence and below."""
