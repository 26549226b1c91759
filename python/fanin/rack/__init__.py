"""What a capture says about the rack it was taken on."""
